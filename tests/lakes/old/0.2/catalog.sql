CREATE TABLE public.ducklake_column (
    column_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    table_id bigint,
    column_order bigint,
    column_name character varying,
    column_type character varying,
    initial_default character varying,
    default_value character varying,
    nulls_allowed boolean,
    parent_column bigint
);
CREATE TABLE public.ducklake_column_mapping (
    mapping_id bigint,
    table_id bigint,
    type character varying
);
CREATE TABLE public.ducklake_column_tag (
    table_id bigint,
    column_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    key character varying,
    value character varying
);
CREATE TABLE public.ducklake_data_file (
    data_file_id bigint NOT NULL,
    table_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    file_order bigint,
    path character varying,
    path_is_relative boolean,
    file_format character varying,
    record_count bigint,
    file_size_bytes bigint,
    footer_size bigint,
    row_id_start bigint,
    partition_id bigint,
    encryption_key character varying,
    partial_file_info character varying,
    mapping_id bigint
);
CREATE TABLE public.ducklake_delete_file (
    delete_file_id bigint NOT NULL,
    table_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    data_file_id bigint,
    path character varying,
    path_is_relative boolean,
    format character varying,
    delete_count bigint,
    file_size_bytes bigint,
    footer_size bigint,
    encryption_key character varying
);
CREATE TABLE public.ducklake_file_column_statistics (
    data_file_id bigint,
    table_id bigint,
    column_id bigint,
    column_size_bytes bigint,
    value_count bigint,
    null_count bigint,
    min_value character varying,
    max_value character varying,
    contains_nan boolean
);
CREATE TABLE public.ducklake_file_partition_value (
    data_file_id bigint,
    table_id bigint,
    partition_key_index bigint,
    partition_value character varying
);
CREATE TABLE public.ducklake_files_scheduled_for_deletion (
    data_file_id bigint,
    path character varying,
    path_is_relative boolean,
    schedule_start timestamp with time zone
);
CREATE TABLE public.ducklake_inlined_data_tables (
    table_id bigint,
    table_name character varying,
    schema_version bigint
);
CREATE TABLE public.ducklake_metadata (
    key character varying NOT NULL,
    value character varying NOT NULL,
    scope character varying,
    scope_id bigint
);
CREATE TABLE public.ducklake_name_mapping (
    mapping_id bigint,
    column_id bigint,
    source_name character varying,
    target_field_id bigint,
    parent_column bigint
);
CREATE TABLE public.ducklake_partition_column (
    partition_id bigint,
    table_id bigint,
    partition_key_index bigint,
    column_id bigint,
    transform character varying
);
CREATE TABLE public.ducklake_partition_info (
    partition_id bigint,
    table_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint
);
CREATE TABLE public.ducklake_schema (
    schema_id bigint NOT NULL,
    schema_uuid uuid,
    begin_snapshot bigint,
    end_snapshot bigint,
    schema_name character varying,
    path character varying,
    path_is_relative boolean
);
CREATE TABLE public.ducklake_snapshot (
    snapshot_id bigint NOT NULL,
    snapshot_time timestamp with time zone,
    schema_version bigint,
    next_catalog_id bigint,
    next_file_id bigint
);
CREATE TABLE public.ducklake_snapshot_changes (
    snapshot_id bigint NOT NULL,
    changes_made character varying
);
CREATE TABLE public.ducklake_table (
    table_id bigint,
    table_uuid uuid,
    begin_snapshot bigint,
    end_snapshot bigint,
    schema_id bigint,
    table_name character varying,
    path character varying,
    path_is_relative boolean
);
CREATE TABLE public.ducklake_table_column_stats (
    table_id bigint,
    column_id bigint,
    contains_null boolean,
    contains_nan boolean,
    min_value character varying,
    max_value character varying
);
CREATE TABLE public.ducklake_table_stats (
    table_id bigint,
    record_count bigint,
    next_row_id bigint,
    file_size_bytes bigint
);
CREATE TABLE public.ducklake_tag (
    object_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    key character varying,
    value character varying
);
CREATE TABLE public.ducklake_view (
    view_id bigint,
    view_uuid uuid,
    begin_snapshot bigint,
    end_snapshot bigint,
    schema_id bigint,
    view_name character varying,
    dialect character varying,
    sql character varying,
    column_aliases character varying
);
INSERT INTO public.ducklake_column VALUES (4, 1, NULL, 1, 4, 'd', 'date', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (5, 1, NULL, 1, 5, 'm', 'decimal(9,2)', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (6, 1, NULL, 1, 6, 'ts', 'timestamp', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (7, 1, NULL, 1, 7, 'b', 'blob', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (8, 1, NULL, 1, 8, 'l', 'list', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (9, 1, NULL, 1, 9, 'element', 'int32', NULL, NULL, true, 8);
INSERT INTO public.ducklake_column VALUES (10, 7, NULL, 1, 10, 'x', 'int32', '42', '42', true, NULL);
INSERT INTO public.ducklake_column VALUES (2, 1, 9, 1, 2, 's', 'varchar', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (2, 9, NULL, 1, 2, 'name', 'varchar', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (3, 1, 10, 1, 3, 'n', 'float64', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (1, 1, 11, 1, 1, 'i', 'int32', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (1, 11, NULL, 1, 1, 'i', 'int64', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (1, 15, NULL, 3, 1, 'k', 'varchar', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (2, 15, NULL, 3, 2, 'v', 'int32', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (1, 19, NULL, 5, 1, 'a', 'int32', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (1, 22, NULL, 6, 1, 'a', 'int32', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (2, 22, NULL, 6, 2, 's', 'varchar', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_data_file VALUES (0, 1, 2, NULL, NULL, 'ducklake-01a1fb09-8390-7541-a1d7-2d852a37666a.parquet', true, 'parquet', 20, 2163, 737, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (1, 1, 3, NULL, NULL, 'ducklake-01a1fb09-8464-7921-8704-5e2a60b3b8db.parquet', true, 'parquet', 3, 1618, 733, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (5, 1, 6, NULL, NULL, 'ducklake-01a1fb09-8589-755b-805a-ca1b1f42a71a.parquet', true, 'parquet', 2, 1909, 942, 23, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (9, 1, 12, NULL, NULL, 'ducklake-01a1fb09-86e3-72f8-8156-7c0b6370f818.parquet', true, 'parquet', 1, 1043, 607, 26, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (8, 1, 8, 13, NULL, 'ducklake-01a1fb09-8617-78df-9aa9-0cda0daa148f.parquet', true, 'parquet', 1, 1301, 704, 25, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (10, 3, 17, NULL, NULL, 'k=k0/ducklake-01a1fb09-87a9-7c81-b51d-b5d91f0c69c4.parquet', true, 'parquet', 6, 458, 226, 0, 4, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (11, 3, 17, NULL, NULL, 'k=k1/ducklake-01a1fb09-87b8-7b5d-8063-1d12e3c12f64.parquet', true, 'parquet', 6, 458, 226, 6, 4, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (12, 5, 20, NULL, NULL, 'ducklake-01a1fb09-8882-7ca3-af00-f4d7a8185612.parquet', true, 'parquet', 2, 271, 156, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (20, 6, 23, 33, NULL, 'ducklake-01a1fb09-8b82-7fd9-a659-6e1794492d0e.parquet', true, 'parquet', 65, 1222, 406, 0, NULL, NULL, '23:12|24:25|25:39|27:54|28:65', NULL);
INSERT INTO public.ducklake_data_file VALUES (22, 6, 31, 33, NULL, 'ducklake-01a1fb09-8c05-7009-ad26-8280726d6f83.parquet', true, 'parquet', 1, 441, 236, 65, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (24, 6, 34, NULL, NULL, 'ducklake-01a1fb09-8cc0-7389-b6b4-30a4fae99692.parquet', true, 'parquet', 1, 441, 236, 66, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_delete_file VALUES (2, 1, 4, 5, 0, 'ducklake-01a1fb09-84e9-7ce9-b725-6801ecc68d4e-delete.parquet', true, 'parquet', 1, 866, 580, NULL);
INSERT INTO public.ducklake_delete_file VALUES (3, 1, 5, 6, 1, 'ducklake-01a1fb09-8517-71fb-a6fb-09b7f67541a0-delete.parquet', true, 'parquet', 1, 866, 580, NULL);
INSERT INTO public.ducklake_delete_file VALUES (4, 1, 5, 6, 0, 'ducklake-01a1fb09-8521-7c6f-bae4-41ac2583fe74-delete.parquet', true, 'parquet', 2, 881, 582, NULL);
INSERT INTO public.ducklake_delete_file VALUES (6, 1, 6, NULL, 0, 'ducklake-01a1fb09-8597-7f22-b6df-91057b807cc7-delete.parquet', true, 'parquet', 3, 886, 582, NULL);
INSERT INTO public.ducklake_delete_file VALUES (7, 1, 6, NULL, 1, 'ducklake-01a1fb09-85a1-7580-9a50-dbe82611b648-delete.parquet', true, 'parquet', 2, 881, 582, NULL);
INSERT INTO public.ducklake_delete_file VALUES (13, 3, 20, NULL, 11, 'ducklake-01a1fb09-88ea-75a9-8138-75ae5dd012d2-delete.parquet', true, 'parquet', 1, 1042, 728, NULL);
INSERT INTO public.ducklake_delete_file VALUES (21, 6, 30, 32, 20, 'ducklake-01a1fb09-8be2-76bb-b069-ac7d1c4360ac-delete.parquet', true, 'parquet', 2, 881, 582, NULL);
INSERT INTO public.ducklake_delete_file VALUES (23, 6, 32, NULL, 20, 'ducklake-01a1fb09-8c49-7e7b-ba35-bbe39f77ee41-delete.parquet', true, 'parquet', 3, 886, 582, NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (0, 1, 1, 150, 20, 0, '1', '20', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (0, 1, 2, 159, 20, 0, 's1', 's9', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (0, 1, 3, 159, 20, 0, '-inf', '4.5', true);
INSERT INTO public.ducklake_file_column_statistics VALUES (0, 1, 4, 150, 20, 0, '2024-01-02', '2024-01-21', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (0, 1, 5, 150, 20, 0, '1.01', '20.20', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (0, 1, 6, 51, 20, 0, '2024-01-01 00:00:00.123456', '2024-01-01 00:00:00.123456', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (0, 1, 7, 48, 20, 0, '62', '62', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (0, 1, 9, 171, NULL, NULL, '1', '20', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (1, 1, 1, 63, 2, 1, '30', '31', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (1, 1, 2, 67, 2, 1, '', 'it''s', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (1, 1, 3, 71, 2, 1, '1e+300', '1e+300', true);
INSERT INTO public.ducklake_file_column_statistics VALUES (1, 1, 4, 63, 2, 1, '0044-03-15 (BC)', 'infinity', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (1, 1, 5, 52, 1, 2, '-0.01', '-0.01', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (1, 1, 6, 56, 1, 2, '9999-12-31 00:00:00', '9999-12-31 00:00:00', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (1, 1, 7, 66, 2, 1, '', '784646', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (1, 1, 9, 59, NULL, NULL, '1', '1', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (5, 1, 1, 56, 2, 0, '7', '31', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (5, 1, 2, 54, 2, 0, 'updated', 'updated', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (5, 1, 3, 64, 2, 0, '1.75', '1e+300', false);
INSERT INTO public.ducklake_file_column_statistics VALUES (5, 1, 4, 56, 2, 0, '2024-01-08', 'infinity', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (5, 1, 5, 56, 2, 0, '-0.01', '7.07', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (5, 1, 6, 64, 2, 0, '2024-01-01 00:00:00.123456', '9999-12-31 00:00:00', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (5, 1, 7, 53, 1, 1, '62', '62', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (5, 1, 9, 65, NULL, NULL, '7', '7', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (8, 1, 1, 47, 1, 0, '40', '40', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (8, 1, 2, 52, 1, 0, 'later', 'later', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (8, 1, 3, 51, 1, 0, '1.5', '1.5', false);
INSERT INTO public.ducklake_file_column_statistics VALUES (8, 1, 4, 25, 0, 1, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (8, 1, 5, 47, 1, 0, '1.00', '1.00', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (8, 1, 6, 25, 0, 1, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (8, 1, 7, 25, 0, 1, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (8, 1, 9, 0, 1, 0, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (8, 1, 10, 47, 1, 0, '7', '7', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (9, 1, 1, 51, 1, 0, '5000000000', '5000000000', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (9, 1, 2, 54, 1, 0, 'renamed', 'renamed', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (9, 1, 4, 25, 0, 1, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (9, 1, 5, 25, 0, 1, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (9, 1, 6, 25, 0, 1, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (9, 1, 7, 25, 0, 1, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (9, 1, 9, 0, 1, 0, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (9, 1, 10, 47, 1, 0, '42', '42', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (10, 3, 1, 49, 6, 0, 'k0', 'k0', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (10, 3, 2, 77, 6, 0, '0', '10', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (11, 3, 1, 49, 6, 0, 'k1', 'k1', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (11, 3, 2, 77, 6, 0, '1', '11', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (12, 5, 1, 56, 2, 0, '1', '2', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (20, 6, 1, 385, 65, 0, '100', '510', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (20, 6, 2, 98, 65, 0, 'fifth', 'third', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (22, 6, 1, 47, 1, 0, '1', '1', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (22, 6, 2, 52, 1, 0, 'after', 'after', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (24, 6, 1, 47, 1, 0, '2', '2', NULL);
INSERT INTO public.ducklake_file_column_statistics VALUES (24, 6, 2, 52, 1, 0, 'again', 'again', NULL);
INSERT INTO public.ducklake_file_partition_value VALUES (10, 3, 0, 'k0');
INSERT INTO public.ducklake_file_partition_value VALUES (11, 3, 0, 'k1');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (14, 'main/m/ducklake-01a1fb09-8919-7cee-81a8-be1f53802575.parquet', true, '2026-11-20 22:17:48.817+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (15, 'main/m/ducklake-01a1fb09-8951-7a5e-8b56-cb96de6cea11.parquet', true, '2026-11-20 22:17:48.817+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (16, 'main/m/ducklake-01a1fb09-898f-7be4-af4e-cea974f45939.parquet', true, '2026-11-20 22:17:48.817+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (17, 'main/m/ducklake-01a1fb09-8a21-728e-a08a-074789a3b636.parquet', true, '2026-11-20 22:17:49.164+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (18, 'main/m/ducklake-01a1fb09-8a88-7e86-93b9-1da31e480680.parquet', true, '2026-11-20 22:17:49.164+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (19, 'main/m/ducklake-01a1fb09-8b12-7552-854d-d02e8bde8ede.parquet', true, '2026-11-20 22:17:49.164+00');
INSERT INTO public.ducklake_metadata VALUES ('version', '0.2', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('created_by', 'DuckDB 0b83e5d2f6', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('data_path', 's3://lakes/old-0.2/', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('encrypted', 'false', NULL, NULL);
INSERT INTO public.ducklake_partition_column VALUES (4, 3, 0, 1, 'identity');
INSERT INTO public.ducklake_partition_info VALUES (4, 3, 16, 18);
INSERT INTO public.ducklake_schema VALUES (0, '48bec978-0ea9-46f3-92d8-ea951cb48039', 0, NULL, 'main', 'main/', true);
INSERT INTO public.ducklake_schema VALUES (2, '01a1fb09-8760-7336-b677-0e4f6c1fb6b5', 14, NULL, 'other one', '01a1fb09-8760-7336-b677-0e4f6c1fb6b5/', true);
INSERT INTO public.ducklake_snapshot VALUES (0, '2026-11-20 22:17:46.912+00', 0, 1, 0);
INSERT INTO public.ducklake_snapshot VALUES (1, '2026-11-20 22:17:47.078+00', 1, 2, 0);
INSERT INTO public.ducklake_snapshot VALUES (2, '2026-11-20 22:17:47.128+00', 1, 2, 1);
INSERT INTO public.ducklake_snapshot VALUES (3, '2026-11-20 22:17:47.36+00', 1, 2, 2);
INSERT INTO public.ducklake_snapshot VALUES (4, '2026-11-20 22:17:47.468+00', 1, 2, 3);
INSERT INTO public.ducklake_snapshot VALUES (5, '2026-11-20 22:17:47.513+00', 1, 2, 5);
INSERT INTO public.ducklake_snapshot VALUES (6, '2026-11-20 22:17:47.596+00', 1, 2, 8);
INSERT INTO public.ducklake_snapshot VALUES (7, '2026-11-20 22:17:47.73+00', 2, 2, 8);
INSERT INTO public.ducklake_snapshot VALUES (8, '2026-11-20 22:17:47.78+00', 2, 2, 9);
INSERT INTO public.ducklake_snapshot VALUES (9, '2026-11-20 22:17:47.844+00', 3, 2, 9);
INSERT INTO public.ducklake_snapshot VALUES (10, '2026-11-20 22:17:47.866+00', 4, 2, 9);
INSERT INTO public.ducklake_snapshot VALUES (11, '2026-11-20 22:17:47.906+00', 5, 2, 9);
INSERT INTO public.ducklake_snapshot VALUES (12, '2026-11-20 22:17:47.958+00', 5, 2, 10);
INSERT INTO public.ducklake_snapshot VALUES (13, '2026-11-20 22:17:48.098+00', 5, 2, 10);
INSERT INTO public.ducklake_snapshot VALUES (14, '2026-11-20 22:17:48.127+00', 6, 3, 10);
INSERT INTO public.ducklake_snapshot VALUES (15, '2026-11-20 22:17:48.13+00', 7, 4, 10);
INSERT INTO public.ducklake_snapshot VALUES (16, '2026-11-20 22:17:48.179+00', 8, 5, 10);
INSERT INTO public.ducklake_snapshot VALUES (17, '2026-11-20 22:17:48.193+00', 8, 5, 12);
INSERT INTO public.ducklake_snapshot VALUES (18, '2026-11-20 22:17:48.293+00', 9, 5, 12);
INSERT INTO public.ducklake_snapshot VALUES (19, '2026-11-20 22:17:48.353+00', 10, 6, 12);
INSERT INTO public.ducklake_snapshot VALUES (20, '2026-11-20 22:17:48.395+00', 10, 6, 14);
INSERT INTO public.ducklake_snapshot VALUES (21, '2026-11-20 22:17:48.542+00', 11, 6, 14);
INSERT INTO public.ducklake_snapshot VALUES (22, '2026-11-20 22:17:48.548+00', 12, 7, 14);
INSERT INTO public.ducklake_snapshot VALUES (23, '2026-11-20 22:17:48.561+00', 12, 7, 15);
INSERT INTO public.ducklake_snapshot VALUES (24, '2026-11-20 22:17:48.612+00', 12, 7, 16);
INSERT INTO public.ducklake_snapshot VALUES (25, '2026-11-20 22:17:48.683+00', 12, 7, 17);
INSERT INTO public.ducklake_snapshot VALUES (26, '2026-11-20 22:17:48.817+00', 12, 7, 18);
INSERT INTO public.ducklake_snapshot VALUES (27, '2026-11-20 22:17:48.925+00', 12, 7, 19);
INSERT INTO public.ducklake_snapshot VALUES (28, '2026-11-20 22:17:49.052+00', 12, 7, 20);
INSERT INTO public.ducklake_snapshot VALUES (29, '2026-11-20 22:17:49.164+00', 12, 7, 21);
INSERT INTO public.ducklake_snapshot VALUES (30, '2026-11-20 22:17:49.264+00', 12, 7, 22);
INSERT INTO public.ducklake_snapshot VALUES (31, '2026-11-20 22:17:49.309+00', 12, 7, 23);
INSERT INTO public.ducklake_snapshot VALUES (32, '2026-11-20 22:17:49.353+00', 12, 7, 24);
INSERT INTO public.ducklake_snapshot VALUES (33, '2026-11-20 22:17:49.441+00', 12, 7, 24);
INSERT INTO public.ducklake_snapshot VALUES (34, '2026-11-20 22:17:49.492+00', 12, 7, 25);
INSERT INTO public.ducklake_snapshot_changes VALUES (0, 'created_schema:"main"');
INSERT INTO public.ducklake_snapshot_changes VALUES (1, 'created_table:"main"."t"');
INSERT INTO public.ducklake_snapshot_changes VALUES (2, 'inserted_into_table:1');
INSERT INTO public.ducklake_snapshot_changes VALUES (3, 'inserted_into_table:1');
INSERT INTO public.ducklake_snapshot_changes VALUES (4, 'deleted_from_table:1');
INSERT INTO public.ducklake_snapshot_changes VALUES (5, 'deleted_from_table:1');
INSERT INTO public.ducklake_snapshot_changes VALUES (6, 'inserted_into_table:1,deleted_from_table:1');
INSERT INTO public.ducklake_snapshot_changes VALUES (7, 'altered_table:1');
INSERT INTO public.ducklake_snapshot_changes VALUES (8, 'inserted_into_table:1');
INSERT INTO public.ducklake_snapshot_changes VALUES (9, 'altered_table:1');
INSERT INTO public.ducklake_snapshot_changes VALUES (10, 'altered_table:1');
INSERT INTO public.ducklake_snapshot_changes VALUES (11, 'altered_table:1');
INSERT INTO public.ducklake_snapshot_changes VALUES (12, 'inserted_into_table:1');
INSERT INTO public.ducklake_snapshot_changes VALUES (13, 'deleted_from_table:1');
INSERT INTO public.ducklake_snapshot_changes VALUES (14, 'created_schema:"other one"');
INSERT INTO public.ducklake_snapshot_changes VALUES (15, 'created_table:"other one"."p"');
INSERT INTO public.ducklake_snapshot_changes VALUES (16, 'altered_table:3');
INSERT INTO public.ducklake_snapshot_changes VALUES (17, 'inserted_into_table:3');
INSERT INTO public.ducklake_snapshot_changes VALUES (18, 'dropped_table:3,created_table:"other one"."q"');
INSERT INTO public.ducklake_snapshot_changes VALUES (19, 'created_table:"main"."gone"');
INSERT INTO public.ducklake_snapshot_changes VALUES (20, 'inserted_into_table:5,deleted_from_table:3');
INSERT INTO public.ducklake_snapshot_changes VALUES (21, 'dropped_table:5');
INSERT INTO public.ducklake_snapshot_changes VALUES (22, 'created_table:"main"."m"');
INSERT INTO public.ducklake_snapshot_changes VALUES (23, 'inserted_into_table:6');
INSERT INTO public.ducklake_snapshot_changes VALUES (24, 'inserted_into_table:6');
INSERT INTO public.ducklake_snapshot_changes VALUES (25, 'inserted_into_table:6');
INSERT INTO public.ducklake_snapshot_changes VALUES (26, 'compacted_table:6');
INSERT INTO public.ducklake_snapshot_changes VALUES (27, 'inserted_into_table:6');
INSERT INTO public.ducklake_snapshot_changes VALUES (28, 'inserted_into_table:6');
INSERT INTO public.ducklake_snapshot_changes VALUES (29, 'compacted_table:6');
INSERT INTO public.ducklake_snapshot_changes VALUES (30, 'deleted_from_table:6');
INSERT INTO public.ducklake_snapshot_changes VALUES (31, 'inserted_into_table:6');
INSERT INTO public.ducklake_snapshot_changes VALUES (32, 'deleted_from_table:6');
INSERT INTO public.ducklake_snapshot_changes VALUES (33, 'deleted_from_table:6');
INSERT INTO public.ducklake_snapshot_changes VALUES (34, 'inserted_into_table:6');
INSERT INTO public.ducklake_table VALUES (1, '01a1fb09-8352-7c0f-81b5-9040af4893d1', 1, NULL, 0, 't', 't/', true);
INSERT INTO public.ducklake_table VALUES (3, '01a1fb09-878d-7207-915d-4a451a74e899', 15, 18, 2, 'p', 'p/', true);
INSERT INTO public.ducklake_table VALUES (3, '01a1fb09-878d-7207-915d-4a451a74e899', 18, NULL, 2, 'q', 'p/', true);
INSERT INTO public.ducklake_table VALUES (5, '01a1fb09-8859-7301-ad72-f60f3f6c6c41', 19, 21, 0, 'gone', 'gone/', true);
INSERT INTO public.ducklake_table VALUES (6, '01a1fb09-890f-7c23-9bb5-b6ca7eda750a', 22, NULL, 0, 'm', 'm/', true);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 3, true, true, '-inf', '1e+300');
INSERT INTO public.ducklake_table_column_stats VALUES (1, 1, true, NULL, '1', '5000000000');
INSERT INTO public.ducklake_table_column_stats VALUES (1, 2, true, NULL, '', 'updated');
INSERT INTO public.ducklake_table_column_stats VALUES (1, 4, true, NULL, '0044-03-15 (BC)', 'infinity');
INSERT INTO public.ducklake_table_column_stats VALUES (1, 5, true, NULL, '-0.01', '20.20');
INSERT INTO public.ducklake_table_column_stats VALUES (1, 6, true, NULL, '2024-01-01 00:00:00.123456', '9999-12-31 00:00:00');
INSERT INTO public.ducklake_table_column_stats VALUES (1, 7, true, NULL, '', '784646');
INSERT INTO public.ducklake_table_column_stats VALUES (1, 9, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (3, 1, false, NULL, 'k0', 'k1');
INSERT INTO public.ducklake_table_column_stats VALUES (3, 2, false, NULL, '0', '11');
INSERT INTO public.ducklake_table_column_stats VALUES (5, 1, false, NULL, '1', '2');
INSERT INTO public.ducklake_table_column_stats VALUES (6, 1, false, NULL, '1', '510');
INSERT INTO public.ducklake_table_column_stats VALUES (6, 2, false, NULL, 'after', 'third');
INSERT INTO public.ducklake_table_stats VALUES (1, 27, 27, 8034);
INSERT INTO public.ducklake_table_stats VALUES (3, 12, 12, 916);
INSERT INTO public.ducklake_table_stats VALUES (5, 2, 2, 271);
INSERT INTO public.ducklake_table_stats VALUES (6, 67, 67, 3430);
ALTER TABLE ONLY public.ducklake_data_file
    ADD CONSTRAINT ducklake_data_file_pkey PRIMARY KEY (data_file_id);
ALTER TABLE ONLY public.ducklake_delete_file
    ADD CONSTRAINT ducklake_delete_file_pkey PRIMARY KEY (delete_file_id);
ALTER TABLE ONLY public.ducklake_schema
    ADD CONSTRAINT ducklake_schema_pkey PRIMARY KEY (schema_id);
ALTER TABLE ONLY public.ducklake_snapshot_changes
    ADD CONSTRAINT ducklake_snapshot_changes_pkey PRIMARY KEY (snapshot_id);
ALTER TABLE ONLY public.ducklake_snapshot
    ADD CONSTRAINT ducklake_snapshot_pkey PRIMARY KEY (snapshot_id);
