package org.apache.kafka.connect.runtime;

import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.sink.SinkTaskContext;

/** In place of Kafka Connect's own: the sink looks for the consumer in a field of a class of this name. */
public final class WorkerSinkTaskContext implements SinkTaskContext {
  private final Consumer<byte[], byte[]> consumer;
  private final TopicPartition partition;

  public WorkerSinkTaskContext(Consumer<byte[], byte[]> consumer, TopicPartition partition) {
    this.consumer = consumer;
    this.partition = partition;
  }

  @Override
  public Set<TopicPartition> assignment() {
    return Set.of(partition);
  }

  @Override
  public Map<String, String> configs() {
    return Map.of();
  }

  @Override
  public void offset(Map<TopicPartition, Long> offsets) {}

  @Override
  public void offset(TopicPartition of, long offset) {}

  @Override
  public void timeout(long milliseconds) {}

  @Override
  public void pause(TopicPartition... partitions) {}

  @Override
  public void resume(TopicPartition... partitions) {}

  @Override
  public void requestCommit() {}
}
