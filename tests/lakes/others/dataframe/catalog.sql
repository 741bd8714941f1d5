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
INSERT INTO "ducklake_column" VALUES(2,1,NULL,1,2,'v','timestamp',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(1,4,NULL,3,1,'id','int64',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(2,4,NULL,3,2,'v','varchar',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(1,8,NULL,5,1,'id','int64',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(2,8,NULL,5,2,'v','int32',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(1,11,NULL,7,1,'id','int64',NULL,NULL,1,NULL,'literal',NULL);
INSERT INTO "ducklake_column" VALUES(2,11,NULL,7,2,'v','float64',NULL,NULL,1,NULL,'literal',NULL);
CREATE TABLE ducklake_column_mapping(
        mapping_id BIGINT,
        table_id BIGINT,
        "type" VARCHAR
    );
INSERT INTO "ducklake_column_mapping" VALUES(0,1,'map_by_name');
INSERT INTO "ducklake_column_mapping" VALUES(1,3,'map_by_name');
INSERT INTO "ducklake_column_mapping" VALUES(2,3,'map_by_name');
INSERT INTO "ducklake_column_mapping" VALUES(3,5,'map_by_name');
INSERT INTO "ducklake_column_mapping" VALUES(4,7,'map_by_name');
INSERT INTO "ducklake_column_mapping" VALUES(5,7,'map_by_name');
INSERT INTO "ducklake_column_mapping" VALUES(6,7,'map_by_name');
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
INSERT INTO "ducklake_data_file" VALUES(0,1,3,NULL,NULL,'v=50/v=600/ducklake-01a21c83-cbe3-77ec-ad80-722734b6bcdf.parquet',1,'parquet',1,936,728,0,2,NULL,0,NULL);
INSERT INTO "ducklake_data_file" VALUES(1,1,3,NULL,NULL,'v=50/v=606/ducklake-01a21c83-cbed-700c-b5b9-6012e9f94db5.parquet',1,'parquet',1,936,728,1,2,NULL,0,NULL);
INSERT INTO "ducklake_data_file" VALUES(2,1,3,NULL,NULL,'v=51/v=614/ducklake-01a21c83-cbf3-7f22-b4b1-12c8c546d0ee.parquet',1,'parquet',1,936,728,2,2,NULL,0,NULL);
INSERT INTO "ducklake_data_file" VALUES(3,1,3,NULL,NULL,'v=None/v=None/ducklake-01a21c83-cbf5-7a88-bba0-f728abe1a626.parquet',1,'parquet',1,839,684,3,2,NULL,0,NULL);
INSERT INTO "ducklake_data_file" VALUES(4,3,6,NULL,NULL,'v=a/ducklake-01a21c83-ccb1-7d99-850c-aeff596c8168.parquet',1,'parquet',2,868,689,0,4,NULL,1,NULL);
INSERT INTO "ducklake_data_file" VALUES(5,3,6,NULL,NULL,'v=b/ducklake-01a21c83-ccb3-7970-862a-d230e177a8cc.parquet',1,'parquet',1,860,689,2,4,NULL,1,NULL);
INSERT INTO "ducklake_data_file" VALUES(6,3,6,NULL,NULL,'v=None/ducklake-01a21c83-ccb5-7763-a9f4-9229a5aa89c9.parquet',1,'parquet',2,844,681,3,4,NULL,1,NULL);
INSERT INTO "ducklake_data_file" VALUES(7,3,6,NULL,NULL,'v=None/ducklake-01a21c83-ccc2-76d5-8e16-cd8b83a5818f.parquet',1,'parquet',1,877,697,5,4,NULL,1,NULL);
INSERT INTO "ducklake_data_file" VALUES(8,3,7,NULL,NULL,'v=c/ducklake-01a21c83-ccf3-7945-9659-938d5069200e.parquet',1,'parquet',1,860,689,6,4,NULL,2,NULL);
INSERT INTO "ducklake_data_file" VALUES(9,3,7,NULL,NULL,'v=None/ducklake-01a21c83-ccf4-75ec-b25c-ae965c651814.parquet',1,'parquet',1,836,681,7,4,NULL,2,NULL);
INSERT INTO "ducklake_data_file" VALUES(10,5,10,NULL,NULL,'v=1/ducklake-01a21c83-cd5d-79a6-a79b-0b59312dc729.parquet',1,'parquet',1,909,721,0,6,NULL,3,NULL);
INSERT INTO "ducklake_data_file" VALUES(11,5,10,NULL,NULL,'v=2/ducklake-01a21c83-cd5f-7241-a74b-7f019550ce9b.parquet',1,'parquet',2,917,721,1,6,NULL,3,NULL);
INSERT INTO "ducklake_data_file" VALUES(12,5,10,NULL,NULL,'v=None/ducklake-01a21c83-cd60-7603-9d13-1c79e73e365a.parquet',1,'parquet',1,848,693,3,6,NULL,3,NULL);
INSERT INTO "ducklake_data_file" VALUES(13,7,12,NULL,NULL,'ducklake-01a21c83-cdbb-7415-b340-7b0acdf23f84.parquet',1,'parquet',3,947,717,0,NULL,NULL,4,NULL);
INSERT INTO "ducklake_data_file" VALUES(14,7,13,NULL,NULL,'ducklake-01a21c83-cdd4-7a4b-9d41-d569ba27b595.parquet',1,'parquet',1,925,717,3,NULL,NULL,5,NULL);
INSERT INTO "ducklake_data_file" VALUES(15,7,14,NULL,NULL,'ducklake-01a21c83-ce05-70c0-aa66-689566d244f8.parquet',1,'parquet',1,839,673,4,NULL,NULL,6,NULL);
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
INSERT INTO "ducklake_file_column_stats" VALUES(0,1,1,0,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(0,1,2,0,1,0,'2020-01-01 01:02:03.456789','2020-01-01 01:02:03.456789',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(1,1,1,0,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(1,1,2,0,1,0,'2020-07-01 00:00:00','2020-07-01 00:00:00',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(2,1,1,0,1,0,'3','3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(2,1,2,0,1,0,'2021-03-04 05:06:07.000001','2021-03-04 05:06:07.000001',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(3,1,1,0,1,0,'4','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(3,1,2,0,1,1,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(4,3,1,0,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(4,3,2,0,2,0,'a','a',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(5,3,1,0,1,0,'3','3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(5,3,2,0,1,0,'b','b',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(6,3,1,0,2,0,'4','5',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(6,3,2,0,2,2,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(7,3,1,0,1,0,'6','6',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(7,3,2,0,1,0,'None','None',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(8,3,1,0,1,0,'7','7',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(8,3,2,0,1,0,'c','c',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(9,3,1,0,1,0,'8','8',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(9,3,2,0,1,1,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(10,5,1,0,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(10,5,2,0,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(11,5,1,0,2,0,'2','3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(11,5,2,0,2,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(12,5,1,0,1,0,'4','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(12,5,2,0,1,1,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(13,7,1,0,3,0,'1','3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(13,7,2,0,3,1,'1.5','1.5',1,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(14,7,1,0,1,0,'4','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(14,7,2,0,1,0,'2.5','2.5',0,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(15,7,1,0,1,0,'5','5',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(15,7,2,0,1,0,'nan','nan',1,NULL);
CREATE TABLE ducklake_file_partition_value(
        data_file_id BIGINT,
        table_id BIGINT,
        partition_key_index BIGINT,
        partition_value VARCHAR
    );
INSERT INTO "ducklake_file_partition_value" VALUES(0,1,0,'50');
INSERT INTO "ducklake_file_partition_value" VALUES(0,1,1,'600');
INSERT INTO "ducklake_file_partition_value" VALUES(1,1,0,'50');
INSERT INTO "ducklake_file_partition_value" VALUES(1,1,1,'606');
INSERT INTO "ducklake_file_partition_value" VALUES(2,1,0,'51');
INSERT INTO "ducklake_file_partition_value" VALUES(2,1,1,'614');
INSERT INTO "ducklake_file_partition_value" VALUES(3,1,0,'None');
INSERT INTO "ducklake_file_partition_value" VALUES(3,1,1,'None');
INSERT INTO "ducklake_file_partition_value" VALUES(4,3,0,'a');
INSERT INTO "ducklake_file_partition_value" VALUES(5,3,0,'b');
INSERT INTO "ducklake_file_partition_value" VALUES(6,3,0,'None');
INSERT INTO "ducklake_file_partition_value" VALUES(7,3,0,'None');
INSERT INTO "ducklake_file_partition_value" VALUES(8,3,0,'c');
INSERT INTO "ducklake_file_partition_value" VALUES(9,3,0,'None');
INSERT INTO "ducklake_file_partition_value" VALUES(10,5,0,'1');
INSERT INTO "ducklake_file_partition_value" VALUES(11,5,0,'2');
INSERT INTO "ducklake_file_partition_value" VALUES(12,5,0,'None');
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
INSERT INTO "ducklake_metadata" VALUES('data_path','{{FOLDER}}/data/',NULL,NULL);
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
INSERT INTO "ducklake_name_mapping" VALUES(1,1,'id',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(1,2,'v',2,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(2,1,'id',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(2,2,'v',2,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(3,1,'id',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(3,2,'v',2,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(4,1,'id',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(4,2,'v',2,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(5,1,'id',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(5,2,'v',2,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(6,1,'id',1,NULL,0);
INSERT INTO "ducklake_name_mapping" VALUES(6,2,'v',2,NULL,0);
CREATE TABLE ducklake_partition_column(
        partition_id BIGINT,
        table_id BIGINT,
        partition_key_index BIGINT,
        column_id BIGINT,
        "transform" VARCHAR
    );
INSERT INTO "ducklake_partition_column" VALUES(2,1,0,2,'year');
INSERT INTO "ducklake_partition_column" VALUES(2,1,1,2,'month');
INSERT INTO "ducklake_partition_column" VALUES(4,3,0,2,'identity');
INSERT INTO "ducklake_partition_column" VALUES(6,5,0,2,'identity');
CREATE TABLE ducklake_partition_info(
        partition_id BIGINT,
        table_id BIGINT,
        begin_snapshot BIGINT,
        end_snapshot BIGINT
    );
INSERT INTO "ducklake_partition_info" VALUES(2,1,2,NULL);
INSERT INTO "ducklake_partition_info" VALUES(4,3,5,NULL);
INSERT INTO "ducklake_partition_info" VALUES(6,5,9,NULL);
CREATE TABLE ducklake_schema(
        schema_id BIGINT PRIMARY KEY,
        schema_uuid UUID,
        begin_snapshot BIGINT,
        end_snapshot BIGINT,
        schema_name VARCHAR,
        path VARCHAR,
        path_is_relative BOOLEAN
    );
INSERT INTO "ducklake_schema" VALUES(0,'43034304-2c1e-482e-8b59-b783a8e87576',0,NULL,'main','main/',1);
CREATE TABLE ducklake_schema_versions(
        begin_snapshot BIGINT,
        schema_version BIGINT,
        table_id BIGINT
    );
INSERT INTO "ducklake_schema_versions" VALUES(1,1,1);
INSERT INTO "ducklake_schema_versions" VALUES(2,2,1);
INSERT INTO "ducklake_schema_versions" VALUES(4,3,3);
INSERT INTO "ducklake_schema_versions" VALUES(5,4,3);
INSERT INTO "ducklake_schema_versions" VALUES(8,5,5);
INSERT INTO "ducklake_schema_versions" VALUES(9,6,5);
INSERT INTO "ducklake_schema_versions" VALUES(11,7,7);
CREATE TABLE ducklake_snapshot(
        snapshot_id BIGINT PRIMARY KEY,
        snapshot_time TIMESTAMPTZ,
        schema_version BIGINT,
        next_catalog_id BIGINT,
        next_file_id BIGINT
    );
INSERT INTO "ducklake_snapshot" VALUES(0,'2026-11-27 10:18:47.945703+00',0,1,0);
INSERT INTO "ducklake_snapshot" VALUES(1,'2026-11-27 10:18:47.967849+00',1,2,0);
INSERT INTO "ducklake_snapshot" VALUES(2,'2026-11-27 10:18:47.992192+00',2,3,0);
INSERT INTO "ducklake_snapshot" VALUES(3,'2026-11-27 10:18:49.152622+00',2,3,4);
INSERT INTO "ducklake_snapshot" VALUES(4,'2026-11-27 10:18:49.276590+00',3,4,4);
INSERT INTO "ducklake_snapshot" VALUES(5,'2026-11-27 10:18:49.320760+00',4,5,4);
INSERT INTO "ducklake_snapshot" VALUES(6,'2026-11-27 10:18:49.387477+00',4,5,8);
INSERT INTO "ducklake_snapshot" VALUES(7,'2026-11-27 10:18:49.458542+00',4,5,10);
INSERT INTO "ducklake_snapshot" VALUES(8,'2026-11-27 10:18:49.514173+00',5,6,10);
INSERT INTO "ducklake_snapshot" VALUES(9,'2026-11-27 10:18:49.540690+00',6,7,10);
INSERT INTO "ducklake_snapshot" VALUES(10,'2026-11-27 10:18:49.564726+00',6,7,13);
INSERT INTO "ducklake_snapshot" VALUES(11,'2026-11-27 10:18:49.633359+00',7,8,13);
INSERT INTO "ducklake_snapshot" VALUES(12,'2026-11-27 10:18:49.661148+00',7,8,14);
INSERT INTO "ducklake_snapshot" VALUES(13,'2026-11-27 10:18:49.685497+00',7,8,15);
INSERT INTO "ducklake_snapshot" VALUES(14,'2026-11-27 10:18:49.744505+00',7,8,16);
CREATE TABLE ducklake_snapshot_changes(
        snapshot_id BIGINT PRIMARY KEY,
        changes_made VARCHAR,
        author VARCHAR,
        commit_message VARCHAR,
        commit_extra_info VARCHAR
    );
INSERT INTO "ducklake_snapshot_changes" VALUES(0,'created_schema:"main"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(1,'created_table:"main"."by_month"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(2,'altered_table:1',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(3,'inserted_into_table:1',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(4,'created_table:"main"."by_text"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(5,'altered_table:3',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(6,'inserted_into_table:3',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(7,'inserted_into_table:3',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(8,'created_table:"main"."by_number"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(9,'altered_table:5',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(10,'inserted_into_table:5',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(11,'created_table:"main"."floats"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(12,'inserted_into_table:7',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(13,'inserted_into_table:7',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(14,'inserted_into_table:7',NULL,NULL,NULL);
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
INSERT INTO "ducklake_table" VALUES(1,'a98d38fd-b854-4eac-907c-a5673325cbe9',1,NULL,0,'by_month','by_month/',1);
INSERT INTO "ducklake_table" VALUES(3,'6721f413-6455-4033-81fd-f9ce4ac44b11',4,NULL,0,'by_text','by_text/',1);
INSERT INTO "ducklake_table" VALUES(5,'1311fde9-ab0d-4f80-bc8e-5fd92053ff46',8,NULL,0,'by_number','by_number/',1);
INSERT INTO "ducklake_table" VALUES(7,'20a10980-bb5d-4b1f-996d-2e6099ae8805',11,NULL,0,'floats','floats/',1);
CREATE TABLE ducklake_table_column_stats(
        table_id BIGINT,
        column_id BIGINT,
        contains_null BIGINT,
        contains_nan BIGINT,
        min_value VARCHAR,
        max_value VARCHAR,
        extra_stats VARCHAR
    );
INSERT INTO "ducklake_table_column_stats" VALUES(1,1,0,NULL,'1','4',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(1,2,1,NULL,'2020-01-01 01:02:03.456789','2021-03-04 05:06:07.000001',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(3,1,0,NULL,'1','8',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(3,2,1,NULL,'None','c',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(5,1,0,NULL,'1','4',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(5,2,1,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(7,1,0,NULL,'1','5',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(7,2,1,1,'nan','nan',NULL);
CREATE TABLE ducklake_table_stats(
        table_id BIGINT,
        record_count BIGINT,
        next_row_id BIGINT,
        file_size_bytes BIGINT
    );
INSERT INTO "ducklake_table_stats" VALUES(1,4,4,3647);
INSERT INTO "ducklake_table_stats" VALUES(3,8,8,5145);
INSERT INTO "ducklake_table_stats" VALUES(5,4,4,2674);
INSERT INTO "ducklake_table_stats" VALUES(7,5,5,2711);
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
