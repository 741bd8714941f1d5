import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.VarCharType;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.flink.CatalogLoader;
import org.apache.iceberg.flink.TableLoader;
import org.apache.iceberg.flink.sink.FlinkSink;

/** Upserts two rows into a table (id BIGINT, s STRING), with equality deletes: TABLE NAME=VALUE... */
public final class Upsert {
  private Upsert() {}

  public static void main(String[] words) throws Exception {
    Map<String, String> settings = new HashMap<>();
    for (String word : List.of(words).subList(1, words.length)) {
      String[] parts = word.split("=", 2);
      settings.put(parts[0], parts[1]);
    }
    StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
    environment.setParallelism(1);
    RowType type = RowType.of(new BigIntType(), new VarCharType(VarCharType.MAX_LENGTH));
    DataStream<RowData> rows =
        environment.fromData(
            InternalTypeInfo.of(type),
            (RowData) GenericRowData.of(1L, StringData.fromString("b")),
            GenericRowData.of(2L, StringData.fromString("c")));
    CatalogLoader catalog = CatalogLoader.rest("ice", new Configuration(), settings);
    FlinkSink.forRowData(rows)
        .tableLoader(TableLoader.fromCatalog(catalog, TableIdentifier.parse(words[0])))
        .equalityFieldColumns(List.of("id"))
        .upsert(true)
        .append();
    environment.execute();
  }
}
