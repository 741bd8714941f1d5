"""Rows with every type that DuckLake and Iceberg both have, and with values that are difficult."""

VALUES = r"""
SELECT * FROM (VALUES
  (1, true, 5::INTEGER, 1.5::FLOAT, 2.25::DOUBLE, 12.34::DECIMAL(9,2), 1.001::DECIMAL(18,3),
   (-99999999999999999999.5)::DECIMAL(38,1), DATE '2024-02-29',
   TIMESTAMP '2024-01-01 00:00:00.000001', TIMESTAMPTZ '2024-01-01 00:00:00.5+00', 'a',
   'ab'::BLOB, {{a: 1, b: ['x', NULL]}}, [1, NULL, 3], MAP {{'k': 1.5::DOUBLE}}),
  (2, false, -2147483648, 'nan', 'nan', -12.34, -1.001,
   99999999999999999999.5, DATE '{year}-03-15{era}',
   TIMESTAMP '{year}-03-15{era} 01:02:03', TIMESTAMPTZ '1883-11-18 12:00:00+00', repeat('z', 300),
   '\x00\xFF'::BLOB, {{a: NULL, b: []}}, [], MAP {{}}),
  (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (4, true, 2147483647, '-inf', 'inf', 0, 0, 0, DATE '9999-12-31',
   TIMESTAMP '9999-12-31 23:59:59.999999', TIMESTAMPTZ '9999-12-31 23:59:59.999999+00',
   repeat('é', 200), repeat('b', 300)::BLOB, {{a: 7, b: NULL}}, NULL,
   MAP {{'k': NULL, 'é"''': 'nan'::DOUBLE}}),
  (-9223372036854775808, false, 0, '-0.0', 0, 1, 1, 1, DATE '1970-01-01',
   TIMESTAMP '1969-12-31 23:59:59.999999', TIMESTAMPTZ '1970-01-01 00:00:00+00', '',
   '', {{a: 0, b: ['']}}, [0], MAP {{'': 0.0}})
) AS t(id, bo, i, f, d, dec9, dec18, dec38, da, ts, tz, s, bi, st, li, ma)"""
ROWS = VALUES.format(year="0001", era="")
WITH_BC = VALUES.format(year="0044", era=" (BC)")
"""With dates before the year 1, which neither PyIceberg nor Arrow in Python can read."""

PLAIN = f"""
SELECT * REPLACE (if(isfinite(f) AND f <> 0, f, 7) AS f, if(isfinite(d) AND d <> 0, d, 7) AS d,
  replace(s, 'é', 'e') AS s,
  CASE id WHEN 4 THEN MAP {{'k': NULL}} WHEN 1 THEN ma ELSE MAP {{'': 5.0}} END AS ma)
FROM ({ROWS})"""
"""The same without NaN, infinity, -0.0 and a long text that is not ASCII: for these DuckLake's two
ways to write statistics differ."""
