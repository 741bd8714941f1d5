"""Whether the role of the connection may commit for Iceberg clients, from PostgreSQL's own tables.

Every role can read these, so a missing grant is found before a commit fails.
"""

from ...connection.statements import Statement
from ...rows.writers.writer_rights import WriterRights
from ..fragments import CATALOG_SCHEMA

# Tables that a commit creates must belong to the owner of DuckLake's: DuckLake drops them at a
# flush, and the owner's default privileges let readers read them. So the role must be able to
# SET ROLE; before PostgreSQL 16 each member is.
WRITER_RIGHTS = f"""
SELECT current_user::text, pg_get_userbyid(s.relowner)::text,
  pg_has_role(s.relowner, CASE WHEN current_setting('server_version_num')::int >= 160000
    THEN 'SET' ELSE 'MEMBER' END),
  (SELECT value FROM ducklake_metadata WHERE key = 'version'),
  pg_get_userbyid(p.relowner)::text,
  ARRAY(SELECT CASE a.grantee WHEN 0 THEN 'public' ELSE pg_get_userbyid(a.grantee)::text END
    FROM aclexplode(s.relacl) AS a WHERE a.privilege_type = 'SELECT' AND a.grantee <> s.relowner
    EXCEPT
    SELECT CASE a.grantee WHEN 0 THEN 'public' ELSE pg_get_userbyid(a.grantee)::text END
    FROM aclexplode(p.relacl) AS a WHERE a.privilege_type = 'SELECT' ORDER BY 1)
FROM pg_class AS s
LEFT JOIN pg_class AS p ON p.relnamespace = s.relnamespace AND p.relname = 'polynya_commits'
WHERE s.relnamespace = {CATALOG_SCHEMA} AND s.relname = 'ducklake_snapshot'"""


def writer_rights() -> Statement[WriterRights]:
    """The rights of the connection's role."""

    return Statement(WRITER_RIGHTS, {}, lambda rows: WriterRights(*rows[0]))
