import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.ExternalizedCheckpointRetention;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.StateRecoveryOptions;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.VarCharType;
import org.apache.flink.types.RowKind;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.flink.CatalogLoader;
import org.apache.iceberg.flink.TableLoader;
import org.apache.iceberg.flink.sink.FlinkSink;
import org.apache.iceberg.flink.sink.IcebergSink;

/**
 * Streams Debezium's changes from the lines of a file into a table (id, lsn, name) with the key id, with a
 * checkpoint each second: TABLE CHANGES RATE v1|v2 CHECKPOINTS RESTORED|- ends|goes-on NAME=VALUE...
 *
 * <p>`stop` in stdin stops it with a savepoint, whose path it prints. It prints `last` with the last change; a
 * source that goes on after it gives rows that are filtered.
 */
public final class Changes {
  private static final RowType TYPE =
      RowType.of(
          new org.apache.flink.table.types.logical.LogicalType[] {
            new BigIntType(false), new BigIntType(), new VarCharType(VarCharType.MAX_LENGTH)
          },
          new String[] {"id", "lsn", "name"});

  private Changes() {}

  public static void main(String[] words) throws Exception {
    Map<String, String> catalog = new HashMap<>();
    for (String word : List.of(words).subList(7, words.length)) {
      String[] parts = word.split("=", 2);
      catalog.put(parts[0], parts[1]);
    }
    StreamExecutionEnvironment environment =
        StreamExecutionEnvironment.getExecutionEnvironment(settings(words[4], words[5]));
    environment.setParallelism(1);
    DataStream<RowData> rows =
        environment
            .fromSource(
                new DataGeneratorSource<>(
                    new Lines(words[1]),
                    words[6].equals("ends") ? Lines.count(words[1]) : Long.MAX_VALUE,
                    RateLimiterStrategy.perSecond(Double.parseDouble(words[2])),
                    InternalTypeInfo.of(TYPE)),
                WatermarkStrategy.noWatermarks(),
                "changes")
            .uid("changes")
            .filter(row -> row.getRowKind() != RowKind.UPDATE_BEFORE)
            .uid("filter");
    TableLoader table =
        TableLoader.fromCatalog(
            CatalogLoader.rest("ice", new org.apache.hadoop.conf.Configuration(), catalog),
            TableIdentifier.parse(words[0]));
    List<String> key = List.of("id");
    if (words[3].equals("v1")) {
      FlinkSink.forRowData(rows)
          .tableLoader(table)
          .equalityFieldColumns(key)
          .upsert(true)
          .writeParallelism(2)
          .uidPrefix("sink")
          .append();
    } else {
      IcebergSink.forRowData(rows)
          .tableLoader(table)
          .equalityFieldColumns(key)
          .upsert(true)
          .writeParallelism(2)
          .uidSuffix("sink")
          .append();
    }
    JobClient job = environment.executeAsync("changes");
    Thread stopping = new Thread(() -> stop(job, words[4]));
    stopping.setDaemon(true);
    stopping.start();
    job.getJobExecutionResult().get();
    Runtime.getRuntime().halt(0); // threads of the cluster may go on
  }

  private static Configuration settings(String checkpoints, String restored) {
    Configuration settings = new Configuration();
    settings.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofSeconds(1));
    settings.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, "file://" + checkpoints);
    settings.set(CheckpointingOptions.MAX_RETAINED_CHECKPOINTS, 3);
    settings.set(CheckpointingOptions.TOLERABLE_FAILURE_NUMBER, 100);
    settings.set(
        CheckpointingOptions.EXTERNALIZED_CHECKPOINT_RETENTION,
        ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION);
    settings.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
    settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, 1000);
    settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofSeconds(1));
    if (!restored.equals("-")) {
      settings.set(StateRecoveryOptions.SAVEPOINT_PATH, "file://" + restored);
    }
    return settings;
  }

  private static void stop(JobClient job, String folder) {
    try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
      String line = lines.readLine();
      if (line == null || !line.equals("stop")) {
        return;
      }
      while (true) {
        try {
          String path =
              job.stopWithSavepoint(false, "file://" + folder, SavepointFormatType.CANONICAL).get();
          System.out.println("savepoint " + path);
          System.out.flush();
          Runtime.getRuntime().halt(0);
        } catch (ExecutionException error) {
          Thread.sleep(500); // it is just starting again
        }
      }
    } catch (Exception error) {
      System.out.println("error " + String.valueOf(error).replace('\n', ' '));
      System.out.flush();
      Runtime.getRuntime().halt(1);
    }
  }

  /** The row of each line. */
  private static final class Lines implements GeneratorFunction<Long, RowData> {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final String path;
    private transient List<String> lines;

    Lines(String path) {
      this.path = path;
    }

    static long count(String path) throws IOException {
      try (Stream<String> lines = Files.lines(Path.of(path))) {
        return lines.count();
      }
    }

    @Override
    public void open(SourceReaderContext context) throws Exception {
      lines = Files.readAllLines(Path.of(path));
    }

    @Override
    public RowData map(Long number) throws Exception {
      if (number == lines.size() - 1) {
        System.out.println("last");
        System.out.flush();
      }
      if (number >= lines.size()) {
        return GenericRowData.ofKind(RowKind.UPDATE_BEFORE, 0L, 0L, null);
      }
      JsonNode change = JSON.readTree(lines.get(number.intValue()));
      RowKind kind =
          switch (change.get("op").asText()) {
            case "c" -> RowKind.INSERT;
            case "u" -> RowKind.UPDATE_AFTER;
            default -> RowKind.DELETE;
          };
      JsonNode row = change.get(kind == RowKind.DELETE ? "before" : "after");
      JsonNode name = row.get("name");
      return GenericRowData.ofKind(
          kind,
          row.get("id").asLong(),
          row.get("lsn").asLong(),
          name.isNull() ? null : StringData.fromString(name.asText()));
    }
  }
}
