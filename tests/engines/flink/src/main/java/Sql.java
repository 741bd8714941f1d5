import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.CoreOptions;
import org.apache.flink.configuration.ExecutionOptions;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** Runs the statements of a file, one for each line, and prints a line for each row and error: MODE FILE. */
public final class Sql {
  private Sql() {}

  public static void main(String[] words) throws Exception {
    Configuration settings = new Configuration();
    settings.set(ExecutionOptions.RUNTIME_MODE, RuntimeExecutionMode.valueOf(words[0]));
    settings.set(CoreOptions.DEFAULT_PARALLELISM, 1);
    if (words[0].equals("STREAMING")) {
      settings.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofSeconds(1));
    }
    TableEnvironment environment =
        TableEnvironment.create(
            EnvironmentSettings.newInstance().withConfiguration(settings).build());
    for (String statement : Files.readAllLines(Path.of(words[1]))) {
      System.out.println("> " + statement);
      try {
        TableResult result = environment.executeSql(statement);
        if (statement.startsWith("INSERT")) {
          result.await();
          continue;
        }
        try (CloseableIterator<Row> rows = result.collect()) {
          rows.forEachRemaining(row -> System.out.println("row " + row));
        }
      } catch (Throwable error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
          System.out.println("error " + String.valueOf(cause.getMessage()).replace('\n', ' '));
        }
      }
    }
  }
}
