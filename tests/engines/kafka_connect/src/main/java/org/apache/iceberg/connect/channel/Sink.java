package org.apache.iceberg.connect.channel;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.connect.IcebergSinkConfig;
import org.apache.iceberg.connect.data.SinkWriter;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.MemberAssignment;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.connect.runtime.WorkerSinkTaskContext;
import org.apache.kafka.connect.sink.SinkRecord;

/**
 * A task of Iceberg's sink, with its coordinator and its worker, on Kafka's mock clients: FOLDER COUNT RATE
 * NAME=VALUE...
 *
 * <p>The source's records are the numbers from 0 to COUNT. The control topic is a file in FOLDER, of which each
 * line is a transaction: what was read of the source, and the events. So a process goes on where the one before it
 * was killed.
 */
public final class Sink {
  private static final TopicPartition SOURCE = new TopicPartition("source", 0);

  private Sink() {}

  public static void main(String[] words) throws Exception {
    Topic topic = new Topic(Path.of(words[0]));
    long count = Long.parseLong(words[1]);
    long rate = Long.parseLong(words[2]);
    Map<String, String> settings = new HashMap<>();
    for (String word : List.of(words).subList(3, words.length)) {
      String[] parts = word.split("=", 2);
      settings.put(parts[0], parts[1]);
    }
    IcebergSinkConfig config = new IcebergSinkConfig(settings);
    Catalog catalog = CatalogUtil.buildIcebergCatalog("ice", config.catalogProps(), null);
    Clients clients = new Clients(topic, config);
    WorkerSinkTaskContext context =
        new WorkerSinkTaskContext(new MockConsumer<>(OffsetResetStrategy.EARLIEST), SOURCE);
    MemberAssignment assignment = new MemberAssignment(Set.of(SOURCE));
    MemberDescription member =
        new MemberDescription("member", Optional.empty(), "client", "host", assignment);
    CoordinatorThread coordinator =
        new CoordinatorThread(new Coordinator(catalog, config, List.of(member), clients, context));
    coordinator.setDaemon(true);
    coordinator.start();
    Worker worker = new Worker(config, clients, new SinkWriter(catalog, config), context);
    worker.start();
    long next = topic.sourceOffset();
    System.out.println("started at " + next);
    System.out.flush();
    while (!coordinator.isTerminated()) {
      List<SinkRecord> records = new ArrayList<>();
      for (long end = Math.min(count, next + rate / 20); next < end; next++) {
        Map<String, Object> value = Map.of("id", next, "s", "row " + next);
        records.add(new SinkRecord("source", 0, null, null, null, value, next));
      }
      worker.save(records);
      worker.process();
      Thread.sleep(50);
    }
    Runtime.getRuntime().halt(1); // Kafka Connect starts the task again
  }

  /** The control topic, and what consumers have committed. */
  private static final class Topic {
    private final Path log;
    private final Path committed;

    Topic(Path folder) throws IOException {
      this.log = folder.resolve("control");
      this.committed = folder.resolve("committed");
      if (!Files.exists(log)) {
        Files.createFile(log);
      }
      String text = Files.readString(log); // a transaction that was not written whole is none
      Files.writeString(log, text.substring(0, text.lastIndexOf('\n') + 1));
    }

    synchronized void append(Optional<Long> sourceOffset, List<byte[]> events) {
      StringBuilder line = new StringBuilder(sourceOffset.map(String::valueOf).orElse("-"));
      events.forEach(event -> line.append(' ').append(Base64.getEncoder().encodeToString(event)));
      try {
        Files.writeString(log, line.append('\n'), StandardOpenOption.APPEND);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    synchronized List<byte[]> events() {
      List<byte[]> events = new ArrayList<>();
      for (String line : lines()) {
        for (String event : List.of(line.split(" ")).subList(1, line.split(" ").length)) {
          events.add(Base64.getDecoder().decode(event));
        }
      }
      return events;
    }

    long sourceOffset() {
      long offset = 0;
      for (String line : lines()) {
        String first = line.split(" ")[0];
        offset = first.equals("-") ? offset : Long.parseLong(first);
      }
      return offset;
    }

    long committed() {
      try {
        return Files.exists(committed) ? Long.parseLong(Files.readString(committed)) : 0;
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    void commit(long offset) {
      try {
        Path written = Files.writeString(committed.resolveSibling("new"), String.valueOf(offset));
        Files.move(written, committed, StandardCopyOption.ATOMIC_MOVE);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    private List<String> lines() {
      try {
        return Files.readAllLines(log);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  private static final class Clients extends KafkaClientFactory {
    private final Topic topic;
    private final IcebergSinkConfig config;

    Clients(Topic topic, IcebergSinkConfig config) {
      super(Map.of());
      this.topic = topic;
      this.config = config;
    }

    @Override
    Producer<String, byte[]> createProducer(String transactionalId) {
      TopicProducer producer = new TopicProducer(topic);
      producer.initTransactions();
      return producer;
    }

    @Override
    Consumer<String, byte[]> createConsumer(String group) {
      boolean isCoordinator = group.equals(config.connectGroupId() + "-coord");
      return new TopicConsumer(topic, config.controlTopic(), isCoordinator);
    }

    @Override
    Admin createAdmin() {
      Class<?>[] types = {Admin.class};
      return (Admin) Proxy.newProxyInstance(Admin.class.getClassLoader(), types, (p, m, a) -> null);
    }
  }

  /** Writes its transactions into the control topic. */
  private static final class TopicProducer extends MockProducer<String, byte[]> {
    private final Topic topic;
    private Optional<Long> sourceOffset = Optional.empty();

    TopicProducer(Topic topic) {
      super(true, new StringSerializer(), new ByteArraySerializer());
      this.topic = topic;
    }

    @Override
    public void sendOffsetsToTransaction(
        Map<TopicPartition, OffsetAndMetadata> offsets, ConsumerGroupMetadata group) {
      super.sendOffsetsToTransaction(offsets, group);
      sourceOffset = Optional.of(offsets.get(SOURCE).offset());
    }

    @Override
    public void commitTransaction() {
      int before = history().size();
      super.commitTransaction();
      List<byte[]> events = new ArrayList<>();
      List<ProducerRecord<String, byte[]>> all = history();
      all.subList(before, all.size()).forEach(record -> events.add(record.value()));
      topic.append(sourceOffset, events);
      sourceOffset = Optional.empty();
    }
  }

  /** Reads the control topic: a coordinator from where the last one has committed, a worker new events. */
  private static final class TopicConsumer extends MockConsumer<String, byte[]> {
    private final Topic topic;
    private final TopicPartition partition;
    private final boolean isCoordinator;
    private long end;

    TopicConsumer(Topic topic, String name, boolean isCoordinator) {
      super(OffsetResetStrategy.EARLIEST);
      this.topic = topic;
      this.partition = new TopicPartition(name, 0);
      this.isCoordinator = isCoordinator;
    }

    @Override
    public synchronized void subscribe(Collection<String> topics) {
      super.subscribe(topics);
      end = isCoordinator ? topic.committed() : topic.events().size();
      rebalance(List.of(partition));
      updateBeginningOffsets(Map.of(partition, end));
    }

    @Override
    public synchronized ConsumerRecords<String, byte[]> poll(Duration timeout) {
      List<byte[]> events = topic.events();
      for (; end < events.size(); end++) {
        byte[] event = events.get((int) end);
        addRecord(new ConsumerRecord<>(partition.topic(), 0, end, "key", event));
      }
      ConsumerRecords<String, byte[]> records = super.poll(timeout);
      if (records.isEmpty() && !timeout.isZero()) {
        try {
          Thread.sleep(100);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      }
      return records;
    }

    @Override
    public synchronized void commitSync(Map<TopicPartition, OffsetAndMetadata> offsets) {
      topic.commit(offsets.get(partition).offset());
      super.commitSync(offsets);
    }
  }
}
