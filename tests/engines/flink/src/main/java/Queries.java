import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.CoreOptions;
import org.apache.flink.configuration.DeploymentOptions;
import org.apache.flink.configuration.ExecutionOptions;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.LocalZonedTimestampType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.TimestampType;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Answers statements on one cluster: one for each line of stdin, percent-encoded.
 *
 * <p>Prints `columns` and `row` with JSON in the form of Trino's protocol, then `end`, or `error` with
 * the messages of all causes.
 */
public final class Queries {
  private Queries() {}

  public static void main(String[] words) throws Exception {
    Configuration settings = new Configuration();
    settings.set(RestOptions.BIND_ADDRESS, "127.0.0.1");
    settings.set(RestOptions.BIND_PORT, "0");
    MiniClusterConfiguration cluster =
        new MiniClusterConfiguration.Builder()
            .setConfiguration(settings)
            .setNumTaskManagers(1)
            .setNumSlotsPerTaskManager(4)
            .build();
    try (MiniCluster running = new MiniCluster(cluster)) {
      running.start();
      TableEnvironment environment = environment(running.getRestAddress().get());
      BufferedReader lines =
          new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        answer(environment, URLDecoder.decode(line, StandardCharsets.UTF_8));
        System.out.flush();
      }
    }
  }

  private static TableEnvironment environment(URI rest) {
    Configuration settings = new Configuration();
    settings.set(ExecutionOptions.RUNTIME_MODE, RuntimeExecutionMode.BATCH);
    settings.set(CoreOptions.DEFAULT_PARALLELISM, 1);
    settings.set(DeploymentOptions.TARGET, "remote");
    settings.set(RestOptions.ADDRESS, rest.getHost());
    settings.set(RestOptions.PORT, rest.getPort());
    TableEnvironment environment =
        TableEnvironment.create(
            EnvironmentSettings.newInstance().withConfiguration(settings).build());
    environment.getConfig().set("table.local-time-zone", "UTC");
    return environment;
  }

  private static void answer(TableEnvironment environment, String statement) {
    try {
      TableResult result = environment.executeSql(statement);
      List<String> columns = new ArrayList<>();
      for (Column column : result.getResolvedSchema().getColumns()) {
        LogicalType type = column.getDataType().getLogicalType();
        columns.add("{\"name\":" + text(column.getName()) + ",\"typeSignature\":" + type(type) + "}");
      }
      List<String> rows = new ArrayList<>();
      try (CloseableIterator<Row> found = result.collect()) {
        found.forEachRemaining(row -> rows.add("row " + value(row)));
      }
      System.out.println("columns [" + String.join(",", columns) + "]");
      rows.forEach(System.out::println);
      System.out.println("end");
    } catch (Throwable error) {
      Throwable cause = error; // the others say that a job failed, with its id
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      String words = cause.getClass().getSimpleName() + ": " + cause.getMessage();
      System.out.println("error " + words.replaceAll("\\s+", " "));
    }
  }

  private static String type(LogicalType type) {
    List<String> arguments = new ArrayList<>();
    if (type instanceof RowType row) {
      row.getFields().forEach(field -> arguments.add(named(field.getName(), field.getType())));
    } else if (type instanceof ArrayType array) {
      arguments.add(argument("TYPE", type(array.getElementType())));
    } else if (type instanceof MapType map) {
      arguments.add(argument("TYPE", type(map.getKeyType())));
      arguments.add(argument("TYPE", type(map.getValueType())));
    } else if (type instanceof DecimalType decimal) {
      arguments.add(argument("LONG", String.valueOf(decimal.getPrecision())));
      arguments.add(argument("LONG", String.valueOf(decimal.getScale())));
    } else if (type instanceof TimestampType time) {
      arguments.add(argument("LONG", String.valueOf(time.getPrecision())));
    } else if (type instanceof LocalZonedTimestampType time) {
      arguments.add(argument("LONG", String.valueOf(time.getPrecision())));
    }
    return "{\"rawType\":" + text(name(type)) + ",\"arguments\":[" + String.join(",", arguments) + "]}";
  }

  private static String name(LogicalType type) {
    return switch (type.getTypeRoot()) {
      case CHAR, VARCHAR -> "varchar";
      case BINARY, VARBINARY -> "varbinary";
      case FLOAT -> "real";
      case TIME_WITHOUT_TIME_ZONE -> "time";
      case TIMESTAMP_WITHOUT_TIME_ZONE -> "timestamp";
      case TIMESTAMP_WITH_LOCAL_TIME_ZONE -> "timestamp with time zone";
      default -> type.getTypeRoot().name().toLowerCase();
    };
  }

  private static String named(String name, LogicalType type) {
    String value = "{\"fieldName\":{\"name\":" + text(name) + "},\"typeSignature\":" + type(type) + "}";
    return argument("NAMED_TYPE", value);
  }

  private static String argument(String kind, String value) {
    return "{\"kind\":\"" + kind + "\",\"value\":" + value + "}";
  }

  private static String value(Object value) {
    List<String> parts = new ArrayList<>();
    if (value == null) {
      return "null";
    } else if (value instanceof Row row) {
      for (int place = 0; place < row.getArity(); place++) {
        parts.add(value(row.getField(place)));
      }
    } else if (value instanceof Object[] array) {
      for (Object one : array) {
        parts.add(value(one));
      }
    } else if (value instanceof Map<?, ?> map) {
      map.forEach((key, one) -> parts.add(text(String.valueOf(key)) + ":" + value(one)));
      return "{" + String.join(",", parts) + "}";
    } else if (value instanceof byte[] bytes) {
      return text(Base64.getEncoder().encodeToString(bytes));
    } else {
      return text(String.valueOf(value));
    }
    return "[" + String.join(",", parts) + "]";
  }

  private static String text(String text) {
    StringBuilder written = new StringBuilder("\"");
    for (char one : text.toCharArray()) {
      if (one < ' ' || one == '"' || one == '\\' || one > '~') {
        written.append(String.format("\\u%04x", (int) one));
      } else {
        written.append(one);
      }
    }
    return written.append('"').toString();
  }
}
