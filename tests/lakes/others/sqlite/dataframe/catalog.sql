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
INSERT INTO "ducklake_column" VALUES(2,1,NULL,1,2,'v','int64',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(1,3,NULL,2,1,'id','int64',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(2,3,NULL,2,2,'v','blob',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(1,5,NULL,3,1,'id','int64',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(2,5,NULL,3,2,'v','timestamp with time zone',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(1,7,NULL,4,1,'id','int64',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(2,7,NULL,4,2,'v','timestamp with time zone',NULL,NULL,1,NULL,'literal',NULL);
CREATE TABLE ducklake_column_mapping(
        mapping_id BIGINT,
        table_id BIGINT,
        "type" VARCHAR
    );
INSERT INTO "ducklake_column_mapping" VALUES(0,4,'map_by_name');
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
INSERT INTO "ducklake_data_file" VALUES(0,4,8,NULL,NULL,'ducklake-01a21c92-eaf0-719f-a190-b41e5bddd5af.parquet',1,'parquet',2,976,760,0,NULL,NULL,0,NULL);
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
INSERT INTO "ducklake_file_column_stats" VALUES(0,4,1,0,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(0,4,2,0,2,1,'2020-01-01 01:02:03+00','2020-01-01 01:02:03+00',NULL,NULL);
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
CREATE TABLE "ducklake_inlined_data_1_1" ("row_id" BIGINT, "begin_snapshot" BIGINT, "end_snapshot" BIGINT, "id" BIGINT, "v" BIGINT);
INSERT INTO "ducklake_inlined_data_1_1" VALUES(0,2,NULL,1,1);
INSERT INTO "ducklake_inlined_data_1_1" VALUES(1,2,NULL,2,NULL);
CREATE TABLE "ducklake_inlined_data_2_2" ("row_id" BIGINT, "begin_snapshot" BIGINT, "end_snapshot" BIGINT, "id" BIGINT, "v" VARCHAR);
INSERT INTO "ducklake_inlined_data_2_2" VALUES(0,4,NULL,1,X'00FF');
INSERT INTO "ducklake_inlined_data_2_2" VALUES(1,4,NULL,2,NULL);
CREATE TABLE "ducklake_inlined_data_3_3" ("row_id" BIGINT, "begin_snapshot" BIGINT, "end_snapshot" BIGINT, "id" BIGINT, "v" VARCHAR);
INSERT INTO "ducklake_inlined_data_3_3" VALUES(0,6,NULL,1,'2020-01-01 01:02:03+00:00');
INSERT INTO "ducklake_inlined_data_3_3" VALUES(1,6,NULL,2,NULL);
CREATE TABLE ducklake_inlined_data_tables(
        table_id BIGINT,
        table_name VARCHAR,
        schema_version BIGINT
    );
INSERT INTO "ducklake_inlined_data_tables" VALUES(1,'ducklake_inlined_data_1_1',1);
INSERT INTO "ducklake_inlined_data_tables" VALUES(2,'ducklake_inlined_data_2_2',2);
INSERT INTO "ducklake_inlined_data_tables" VALUES(3,'ducklake_inlined_data_3_3',3);
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
INSERT INTO "ducklake_name_mapping" VALUES(0,2,'v',2,NULL,0);
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
INSERT INTO "ducklake_schema" VALUES(0,'e448ad80-b149-4ecd-af36-36fb30ea159a',0,NULL,'main','main/',1);
CREATE TABLE ducklake_schema_versions(
        begin_snapshot BIGINT,
        schema_version BIGINT,
        table_id BIGINT
    );
INSERT INTO "ducklake_schema_versions" VALUES(1,1,1);
INSERT INTO "ducklake_schema_versions" VALUES(3,2,2);
INSERT INTO "ducklake_schema_versions" VALUES(5,3,3);
INSERT INTO "ducklake_schema_versions" VALUES(7,4,4);
CREATE TABLE ducklake_snapshot(
        snapshot_id BIGINT PRIMARY KEY,
        snapshot_time TIMESTAMPTZ,
        schema_version BIGINT,
        next_catalog_id BIGINT,
        next_file_id BIGINT
    );
INSERT INTO "ducklake_snapshot" VALUES(0,'2026-11-27 10:35:20.121312+00',0,1,0);
INSERT INTO "ducklake_snapshot" VALUES(1,'2026-11-27 10:35:20.127528+00',1,2,0);
INSERT INTO "ducklake_snapshot" VALUES(2,'2026-11-27 10:35:20.131800+00',1,2,0);
INSERT INTO "ducklake_snapshot" VALUES(3,'2026-11-27 10:35:20.144578+00',2,3,0);
INSERT INTO "ducklake_snapshot" VALUES(4,'2026-11-27 10:35:20.148080+00',2,3,0);
INSERT INTO "ducklake_snapshot" VALUES(5,'2026-11-27 10:35:20.157592+00',3,4,0);
INSERT INTO "ducklake_snapshot" VALUES(6,'2026-11-27 10:35:20.161063+00',3,4,0);
INSERT INTO "ducklake_snapshot" VALUES(7,'2026-11-27 10:35:20.168033+00',4,5,0);
INSERT INTO "ducklake_snapshot" VALUES(8,'2026-11-27 10:35:20.178549+00',4,5,1);
CREATE TABLE ducklake_snapshot_changes(
        snapshot_id BIGINT PRIMARY KEY,
        changes_made VARCHAR,
        author VARCHAR,
        commit_message VARCHAR,
        commit_extra_info VARCHAR
    );
INSERT INTO "ducklake_snapshot_changes" VALUES(0,'created_schema:"main"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(1,'created_table:"main"."numbers"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(2,'inserted_into_table:1',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(3,'created_table:"main"."bytes"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(4,'inserted_into_table:2',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(5,'created_table:"main"."zoned"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(6,'inserted_into_table:3',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(7,'created_table:"main"."zoned_files"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(8,'inserted_into_table:4',NULL,NULL,NULL);
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
INSERT INTO "ducklake_table" VALUES(1,'4e5ad5fa-b4f2-4f05-bffa-73dd78ade884',1,NULL,0,'numbers','numbers/',1);
INSERT INTO "ducklake_table" VALUES(2,'18abb32e-7093-4a73-8c42-8cd210a685af',3,NULL,0,'bytes','bytes/',1);
INSERT INTO "ducklake_table" VALUES(3,'f27758d1-5a82-4240-b50f-9e19b8f1493c',5,NULL,0,'zoned','zoned/',1);
INSERT INTO "ducklake_table" VALUES(4,'04487999-b8b4-4c99-8f04-a8f6b0acd83f',7,NULL,0,'zoned_files','zoned_files/',1);
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
INSERT INTO "ducklake_table_column_stats" VALUES(1,2,1,NULL,'1','1',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(2,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(2,2,1,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(3,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(3,2,1,NULL,'2020-01-01 01:02:03+00','2020-01-01 01:02:03+00',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(4,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(4,2,1,NULL,'2020-01-01 01:02:03+00','2020-01-01 01:02:03+00',NULL);
CREATE TABLE ducklake_table_stats(
        table_id BIGINT,
        record_count BIGINT,
        next_row_id BIGINT,
        file_size_bytes BIGINT
    );
INSERT INTO "ducklake_table_stats" VALUES(1,2,2,0);
INSERT INTO "ducklake_table_stats" VALUES(2,2,2,0);
INSERT INTO "ducklake_table_stats" VALUES(3,2,2,0);
INSERT INTO "ducklake_table_stats" VALUES(4,2,2,976);
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
