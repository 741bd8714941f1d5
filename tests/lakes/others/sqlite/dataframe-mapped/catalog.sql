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
INSERT INTO "ducklake_column" VALUES(1,1,NULL,1,1,'id','int64',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(2,1,NULL,1,2,'name','varchar',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(1,6,NULL,2,1,'a','int64',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,6,NULL,2,2,'b','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
CREATE TABLE ducklake_column_mapping(
        mapping_id BIGINT,
        table_id BIGINT,
        "type" VARCHAR
    );
INSERT INTO "ducklake_column_mapping" VALUES(0,1,'map_by_name');
INSERT INTO "ducklake_column_mapping" VALUES(1,1,'map_by_name');
INSERT INTO "ducklake_column_mapping" VALUES(2,1,'map_by_name');
INSERT INTO "ducklake_column_mapping" VALUES(3,1,'map_by_name');
INSERT INTO "ducklake_column_mapping" VALUES(4,2,'map_by_name');
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
INSERT INTO "ducklake_data_file" VALUES(0,1,2,NULL,NULL,'ducklake-01a21c93-2d4e-7f14-aa33-a7c8649daf0c.parquet',1,'parquet',1,884,710,0,NULL,NULL,0,NULL);
INSERT INTO "ducklake_data_file" VALUES(1,1,3,NULL,NULL,'ducklake-01a21c93-2d6f-7e38-87e8-b7b4d368a4e7.parquet',1,'parquet',1,884,710,1,NULL,NULL,1,NULL);
INSERT INTO "ducklake_data_file" VALUES(2,1,4,NULL,NULL,'ducklake-01a21c93-2d8b-71f6-8920-8697b8109962.parquet',1,'parquet',1,884,710,2,NULL,NULL,2,NULL);
INSERT INTO "ducklake_data_file" VALUES(3,1,5,NULL,NULL,'ducklake-01a21c93-2d9b-73d5-a992-018ded15f689.parquet',1,'parquet',1,884,710,3,NULL,NULL,3,NULL);
INSERT INTO "ducklake_data_file" VALUES(5,2,7,NULL,NULL,'{{DATA_PATH}}/added.parquet',0,'parquet',1,297,222,0,NULL,NULL,4,NULL);
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
INSERT INTO "ducklake_file_column_stats" VALUES(0,1,1,0,1,0,'0','0',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(0,1,2,0,1,0,'n0','n0',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(1,1,1,0,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(1,1,2,0,1,0,'n1','n1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(2,1,1,0,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(2,1,2,0,1,0,'n2','n2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(3,1,1,0,1,0,'3','3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(3,1,2,0,1,0,'n3','n3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(5,2,1,33,1,0,'7','7',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(5,2,2,30,1,0,'x','x',NULL,NULL);
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
CREATE TABLE ducklake_inlined_data_2_2(row_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, a BIGINT, b VARCHAR);
CREATE TABLE ducklake_inlined_data_tables(
        table_id BIGINT,
        table_name VARCHAR,
        schema_version BIGINT
    );
INSERT INTO "ducklake_inlined_data_tables" VALUES(2,'ducklake_inlined_data_2_2',2);
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
INSERT INTO "ducklake_name_mapping" VALUES(0,1,'id',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(0,2,'name',2,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(1,1,'id',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(1,2,'name',2,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(2,1,'id',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(2,2,'name',2,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(3,1,'id',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(3,2,'name',2,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(4,0,'a',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(4,1,'b',2,NULL,0);
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
INSERT INTO "ducklake_schema" VALUES(0,'21a6a0f8-7870-4dce-9815-398fc3a22896',0,NULL,'main','main/',1);
CREATE TABLE ducklake_schema_versions(
        begin_snapshot BIGINT,
        schema_version BIGINT,
        table_id BIGINT
    );
INSERT INTO "ducklake_schema_versions" VALUES(1,1,1);
INSERT INTO "ducklake_schema_versions" VALUES(6,2,2);
CREATE TABLE ducklake_snapshot(
        snapshot_id BIGINT PRIMARY KEY,
        snapshot_time TIMESTAMPTZ,
        schema_version BIGINT,
        next_catalog_id BIGINT,
        next_file_id BIGINT
    );
INSERT INTO "ducklake_snapshot" VALUES(0,'2026-11-27 10:35:37.155333+00',0,1,0);
INSERT INTO "ducklake_snapshot" VALUES(1,'2026-11-27 10:35:37.162744+00',1,2,0);
INSERT INTO "ducklake_snapshot" VALUES(2,'2026-11-27 10:35:37.184068+00',1,2,1);
INSERT INTO "ducklake_snapshot" VALUES(3,'2026-11-27 10:35:37.200679+00',1,2,2);
INSERT INTO "ducklake_snapshot" VALUES(4,'2026-11-27 10:35:37.228320+00',1,2,3);
INSERT INTO "ducklake_snapshot" VALUES(5,'2026-11-27 10:35:37.244369+00',1,2,4);
INSERT INTO "ducklake_snapshot" VALUES(6,'2026-11-27 10:35:38.227946',2,3,4);
INSERT INTO "ducklake_snapshot" VALUES(7,'2026-11-27 10:35:38.330361',2,3,6);
CREATE TABLE ducklake_snapshot_changes(
        snapshot_id BIGINT PRIMARY KEY,
        changes_made VARCHAR,
        author VARCHAR,
        commit_message VARCHAR,
        commit_extra_info VARCHAR
    );
INSERT INTO "ducklake_snapshot_changes" VALUES(0,'created_schema:"main"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(1,'created_table:"main"."first"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(2,'inserted_into_table:1',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(3,'inserted_into_table:1',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(4,'inserted_into_table:1',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(5,'inserted_into_table:1',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(6,'created_table:"main"."second"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(7,'inserted_into_table:2',NULL,NULL,NULL);
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
INSERT INTO "ducklake_table" VALUES(1,'18cb099d-31e1-4248-a7b1-0c974543a704',1,NULL,0,'first','first/',1);
INSERT INTO "ducklake_table" VALUES(2,'01a21c93-317f-74b1-8c47-01fc9bd47f52',6,NULL,0,'second','second/',1);
CREATE TABLE ducklake_table_column_stats(
        table_id BIGINT,
        column_id BIGINT,
        contains_null BIGINT,
        contains_nan BIGINT,
        min_value VARCHAR,
        max_value VARCHAR,
        extra_stats VARCHAR
    );
INSERT INTO "ducklake_table_column_stats" VALUES(1,1,0,NULL,'0','3',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(1,2,0,NULL,'n0','n3',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(2,1,0,NULL,'7','7',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(2,2,0,NULL,'x','x',NULL);
CREATE TABLE ducklake_table_stats(
        table_id BIGINT,
        record_count BIGINT,
        next_row_id BIGINT,
        file_size_bytes BIGINT
    );
INSERT INTO "ducklake_table_stats" VALUES(1,4,4,3536);
INSERT INTO "ducklake_table_stats" VALUES(2,1,1,297);
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
