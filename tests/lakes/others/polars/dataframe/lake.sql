BEGIN TRANSACTION;
CREATE TABLE ducklake_column(
        column_id BIGINT,
        begin_snapshot BIGINT,
        end_snapshot BIGINT,
        table_id BIGINT,
        column_order BIGINT,
        column_name VARCHAR,
        column_type VARCHAR,
        initial_default VARCHAR,
        default_value VARCHAR,
        nulls_allowed BOOLEAN,
        parent_column BIGINT,
        default_value_type VARCHAR,
        default_value_dialect VARCHAR
    );
INSERT INTO "ducklake_column" VALUES(1,1,NULL,1,1,'i','int64',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(2,1,NULL,1,2,'s','struct',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(3,1,NULL,1,1,'a','int64',NULL,NULL,1,2,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(4,1,NULL,1,2,'b','varchar',NULL,NULL,1,2,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(5,1,NULL,1,3,'l','list',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(6,1,NULL,1,1,'element','int64',NULL,NULL,1,5,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(1,3,NULL,2,1,'i','int64',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(2,3,NULL,2,2,'t','time',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(1,5,NULL,3,1,'i','int64',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(2,5,7,3,2,'c','int64',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(3,8,NULL,3,2,'c','int64',NULL,NULL,1,NULL,'literal',NULL);
CREATE TABLE ducklake_column_mapping(
        mapping_id BIGINT,
        table_id BIGINT,
        "type" VARCHAR
    );
INSERT INTO "ducklake_column_mapping" VALUES(0,1,'map_by_name');
INSERT INTO "ducklake_column_mapping" VALUES(1,2,'map_by_name');
INSERT INTO "ducklake_column_mapping" VALUES(2,3,'map_by_name');
INSERT INTO "ducklake_column_mapping" VALUES(3,3,'map_by_name');
CREATE TABLE ducklake_column_tag(
        table_id BIGINT,
        column_id BIGINT,
        begin_snapshot BIGINT,
        end_snapshot BIGINT,
        "key" VARCHAR,
        "value" VARCHAR
    );
CREATE TABLE ducklake_data_file(
        data_file_id BIGINT PRIMARY KEY,
        table_id BIGINT,
        begin_snapshot BIGINT,
        end_snapshot BIGINT,
        file_order BIGINT,
        path VARCHAR,
        path_is_relative BOOLEAN,
        file_format VARCHAR,
        record_count BIGINT,
        file_size_bytes BIGINT,
        footer_size BIGINT,
        row_id_start BIGINT,
        partition_id BIGINT,
        encryption_key VARCHAR,
        mapping_id BIGINT,
        partial_max BIGINT
    );
INSERT INTO "ducklake_data_file" VALUES(0,1,2,NULL,NULL,'ducklake-01a21cb8-aada-7857-805b-354ea2f987d9.parquet',1,'parquet',2,1738,1330,0,NULL,NULL,0,NULL);
INSERT INTO "ducklake_data_file" VALUES(1,2,4,NULL,NULL,'ducklake-01a21cb8-aaf6-7d81-b64e-64257808a451.parquet',1,'parquet',2,968,744,0,NULL,NULL,1,NULL);
INSERT INTO "ducklake_data_file" VALUES(2,3,6,NULL,NULL,'ducklake-01a21cb8-ab0a-7091-84eb-6d80bde32b0f.parquet',1,'parquet',2,959,735,0,NULL,NULL,2,NULL);
INSERT INTO "ducklake_data_file" VALUES(3,3,9,NULL,NULL,'ducklake-01a21cb8-ab28-7817-9ec6-44fe019a1824.parquet',1,'parquet',1,943,735,2,NULL,NULL,3,NULL);
CREATE TABLE ducklake_delete_file(
        delete_file_id BIGINT PRIMARY KEY,
        table_id BIGINT,
        begin_snapshot BIGINT,
        end_snapshot BIGINT,
        data_file_id BIGINT,
        path VARCHAR,
        path_is_relative BOOLEAN,
        format VARCHAR,
        delete_count BIGINT,
        file_size_bytes BIGINT,
        footer_size BIGINT,
        encryption_key VARCHAR,
        partial_max BIGINT
    );
CREATE TABLE ducklake_file_column_stats(
        data_file_id BIGINT,
        table_id BIGINT,
        column_id BIGINT,
        column_size_bytes BIGINT,
        value_count BIGINT,
        null_count BIGINT,
        min_value VARCHAR,
        max_value VARCHAR,
        contains_nan BOOLEAN,
        extra_stats VARCHAR
    );
INSERT INTO "ducklake_file_column_stats" VALUES(0,1,1,0,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(0,1,2,0,2,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(0,1,5,0,2,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(1,2,1,0,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(1,2,2,0,2,0,'01:02:03.000004','23:59:59.999999',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(2,3,1,0,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(2,3,2,0,2,0,'5','6',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(3,3,1,0,1,0,'3','3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(3,3,3,0,1,0,'7','7',NULL,NULL);
CREATE TABLE ducklake_file_partition_value(
        data_file_id BIGINT,
        table_id BIGINT,
        partition_key_index BIGINT,
        partition_value VARCHAR
    );
CREATE TABLE ducklake_file_variant_stats(
        data_file_id BIGINT,
        table_id BIGINT,
        column_id BIGINT,
        variant_path VARCHAR,
        shredded_type VARCHAR,
        column_size_bytes BIGINT,
        value_count BIGINT,
        null_count BIGINT,
        min_value VARCHAR,
        max_value VARCHAR,
        contains_nan BOOLEAN,
        extra_stats VARCHAR
    );
CREATE TABLE ducklake_files_scheduled_for_deletion(
        data_file_id BIGINT,
        path VARCHAR,
        path_is_relative BOOLEAN,
        schedule_start TIMESTAMPTZ
    );
CREATE TABLE ducklake_inlined_data_tables(
        table_id BIGINT,
        table_name VARCHAR,
        schema_version BIGINT
    );
CREATE TABLE ducklake_macro(
        schema_id BIGINT,
        macro_id BIGINT,
        macro_name VARCHAR,
        begin_snapshot BIGINT,
        end_snapshot BIGINT
    );
CREATE TABLE ducklake_macro_impl(
        macro_id BIGINT,
        impl_id BIGINT,
        dialect VARCHAR,
        "sql" VARCHAR,
        "type" VARCHAR
    );
CREATE TABLE ducklake_macro_parameters(
        macro_id BIGINT,
        impl_id BIGINT,
        column_id BIGINT,
        parameter_name VARCHAR,
        parameter_type VARCHAR,
        default_value VARCHAR,
        default_value_type VARCHAR
    );
CREATE TABLE ducklake_metadata(
        "key" VARCHAR NOT NULL,
        "value" VARCHAR NOT NULL,
        "scope" VARCHAR,
        scope_id BIGINT
    );
INSERT INTO "ducklake_metadata" VALUES('version','1.0',NULL,NULL);
INSERT INTO "ducklake_metadata" VALUES('created_by','ducklake-dataframe',NULL,NULL);
INSERT INTO "ducklake_metadata" VALUES('encrypted','false',NULL,NULL);
INSERT INTO "ducklake_metadata" VALUES('data_path','{{DATA_PATH}}/',NULL,NULL);
CREATE TABLE ducklake_name_mapping(
        mapping_id BIGINT,
        column_id BIGINT,
        source_name VARCHAR,
        target_field_id BIGINT,
        parent_column BIGINT,
        is_partition BOOLEAN
    );
INSERT INTO "ducklake_name_mapping" VALUES(0,1,'i',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(0,2,'s',2,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(0,5,'l',5,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(1,1,'i',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(1,2,'t',2,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(2,1,'i',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(2,2,'c',2,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(3,1,'i',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(3,3,'c',3,NULL,0);
CREATE TABLE ducklake_partition_column(
        partition_id BIGINT,
        table_id BIGINT,
        partition_key_index BIGINT,
        column_id BIGINT,
        "transform" VARCHAR
    );
CREATE TABLE ducklake_partition_info(
        partition_id BIGINT,
        table_id BIGINT,
        begin_snapshot BIGINT,
        end_snapshot BIGINT
    );
CREATE TABLE ducklake_schema(
        schema_id BIGINT PRIMARY KEY,
        schema_uuid UUID,
        begin_snapshot BIGINT,
        end_snapshot BIGINT,
        schema_name VARCHAR,
        path VARCHAR,
        path_is_relative BOOLEAN
    );
INSERT INTO "ducklake_schema" VALUES(0,'a3534fc0-508e-44fe-ae70-3aaf95fc35e8',0,NULL,'main','main/',1);
CREATE TABLE ducklake_schema_versions(
        begin_snapshot BIGINT,
        schema_version BIGINT,
        table_id BIGINT
    );
INSERT INTO "ducklake_schema_versions" VALUES(1,1,1);
INSERT INTO "ducklake_schema_versions" VALUES(3,2,2);
INSERT INTO "ducklake_schema_versions" VALUES(5,3,3);
INSERT INTO "ducklake_schema_versions" VALUES(7,4,3);
INSERT INTO "ducklake_schema_versions" VALUES(8,5,3);
CREATE TABLE ducklake_snapshot(
        snapshot_id BIGINT PRIMARY KEY,
        snapshot_time TIMESTAMPTZ,
        schema_version BIGINT,
        next_catalog_id BIGINT,
        next_file_id BIGINT
    );
INSERT INTO "ducklake_snapshot" VALUES(0,'2026-11-27 11:16:34.117181+00',0,1,0);
INSERT INTO "ducklake_snapshot" VALUES(1,'2026-11-27 11:16:34.135705+00',1,2,0);
INSERT INTO "ducklake_snapshot" VALUES(2,'2026-11-27 11:16:34.140267+00',1,2,1);
INSERT INTO "ducklake_snapshot" VALUES(3,'2026-11-27 11:16:34.155556+00',2,3,1);
INSERT INTO "ducklake_snapshot" VALUES(4,'2026-11-27 11:16:34.167543+00',2,3,2);
INSERT INTO "ducklake_snapshot" VALUES(5,'2026-11-27 11:16:34.179125+00',3,4,2);
INSERT INTO "ducklake_snapshot" VALUES(6,'2026-11-27 11:16:34.186721+00',3,4,3);
INSERT INTO "ducklake_snapshot" VALUES(7,'2026-11-27 11:16:34.195138+00',4,4,3);
INSERT INTO "ducklake_snapshot" VALUES(8,'2026-11-27 11:16:34.206819+00',5,4,3);
INSERT INTO "ducklake_snapshot" VALUES(9,'2026-11-27 11:16:34.217322+00',5,4,4);
CREATE TABLE ducklake_snapshot_changes(
        snapshot_id BIGINT PRIMARY KEY,
        changes_made VARCHAR,
        author VARCHAR,
        commit_message VARCHAR,
        commit_extra_info VARCHAR
    );
INSERT INTO "ducklake_snapshot_changes" VALUES(0,'created_schema:"main"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(1,'created_table:"main"."nested"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(2,'inserted_into_table:1',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(3,'created_table:"main"."times"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(4,'inserted_into_table:2',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(5,'created_table:"main"."readded"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(6,'inserted_into_table:3',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(7,'altered_table:3',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(8,'altered_table:3',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(9,'inserted_into_table:3',NULL,NULL,NULL);
CREATE TABLE ducklake_sort_expression(
        sort_id BIGINT,
        table_id BIGINT,
        sort_key_index BIGINT,
        expression VARCHAR,
        dialect VARCHAR,
        sort_direction VARCHAR,
        null_order VARCHAR
    );
CREATE TABLE ducklake_sort_info(
        sort_id BIGINT,
        table_id BIGINT,
        begin_snapshot BIGINT,
        end_snapshot BIGINT
    );
CREATE TABLE ducklake_table(
        table_id BIGINT,
        table_uuid UUID,
        begin_snapshot BIGINT,
        end_snapshot BIGINT,
        schema_id BIGINT,
        table_name VARCHAR,
        path VARCHAR,
        path_is_relative BOOLEAN
    );
INSERT INTO "ducklake_table" VALUES(1,'5d55e5bd-7dea-45e3-802d-52223bbe593c',1,NULL,0,'nested','nested/',1);
INSERT INTO "ducklake_table" VALUES(2,'8b2ba5e1-9ab0-442b-ba65-187a882cb592',3,NULL,0,'times','times/',1);
INSERT INTO "ducklake_table" VALUES(3,'9163d3a9-4879-4863-aa7a-980057b03ca4',5,NULL,0,'readded','readded/',1);
CREATE TABLE ducklake_table_column_stats(
        table_id BIGINT,
        column_id BIGINT,
        contains_null BIGINT,
        contains_nan BIGINT,
        min_value VARCHAR,
        max_value VARCHAR,
        extra_stats VARCHAR
    );
INSERT INTO "ducklake_table_column_stats" VALUES(1,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(1,2,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(1,5,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(2,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(2,2,0,NULL,'01:02:03.000004','23:59:59.999999',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(3,1,0,NULL,'1','3',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(3,2,0,NULL,'5','6',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(3,3,0,NULL,'7','7',NULL);
CREATE TABLE ducklake_table_stats(
        table_id BIGINT,
        record_count BIGINT,
        next_row_id BIGINT,
        file_size_bytes BIGINT
    );
INSERT INTO "ducklake_table_stats" VALUES(1,2,2,1738);
INSERT INTO "ducklake_table_stats" VALUES(2,2,2,968);
INSERT INTO "ducklake_table_stats" VALUES(3,3,3,1902);
CREATE TABLE ducklake_tag(
        object_id BIGINT,
        begin_snapshot BIGINT,
        end_snapshot BIGINT,
        "key" VARCHAR,
        "value" VARCHAR
    );
CREATE TABLE ducklake_view(
        view_id BIGINT,
        view_uuid UUID,
        begin_snapshot BIGINT,
        end_snapshot BIGINT,
        schema_id BIGINT,
        view_name VARCHAR,
        dialect VARCHAR,
        "sql" VARCHAR,
        column_aliases VARCHAR
    );
COMMIT;
