// Runs one step against a REST catalog: main CATALOG S3 NAMESPACE TABLE STEP
package main

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	_ "github.com/apache/iceberg-go/io/gocloud/s3"
	"github.com/apache/iceberg-go/table"
)

const columns = `[{"id": 1, "name": "id", "type": "long", "required": false},
 {"id": 2, "name": "s", "type": "string", "required": false},
 {"id": 3, "name": "grams", "type": "double", "required": false}]`

var ctx = context.Background()

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3:5], os.Args[5]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(uri, s3 string, name table.Identifier, step string) error {
	properties := iceberg.Properties{
		"s3.endpoint": s3, "s3.access-key-id": "test", "s3.secret-access-key": "test",
		"s3.region": "us-east-1", "s3.force-virtual-addressing": "false",
	}
	cat, err := rest.NewCatalog(ctx, "polynya", uri,
		rest.WithWarehouseLocation("lake"), rest.WithAdditionalProps(properties))
	if err != nil {
		return err
	}
	if step == "create" {
		return create(cat, name)
	}
	tbl, err := cat.LoadTable(ctx, name)
	if err != nil {
		return err
	}
	if number, ok := strings.CutPrefix(step, "append the row "); ok {
		return appendRow(tbl, number)
	}
	if number, ok := strings.CutPrefix(step, "has the row "); ok {
		fmt.Println(hasRow(tbl, number))
		return nil
	}
	if number, ok := strings.CutPrefix(step, "upsert the rows "); ok {
		return upsertRows(tbl, number)
	}
	return steps[step](tbl)
}

// loaded is a property of our own in the summary of a snapshot: the number of the row.
const loaded = "loaded"

// appendRow names the row in the summary, so that hasRow finds out what became of the commit.
func appendRow(t *table.Table, number string) error {
	rows := batch(t, fmt.Sprintf(`[{"id": %s, "s": "%[1]s"}]`, number))
	defer rows.Release()
	_, err := t.Append(ctx, rows, iceberg.Properties{loaded: number})
	return err
}

func hasRow(t *table.Table, number string) bool {
	for snapshot := t.CurrentSnapshot(); snapshot != nil; {
		if snapshot.Summary.Properties[loaded] == number {
			return true
		}
		if snapshot.ParentSnapshotID == nil {
			return false
		}
		snapshot = t.SnapshotByID(*snapshot.ParentSnapshotID)
	}
	return false
}

// upsertRows gives the keys n and n / 2 the text n.
func upsertRows(t *table.Table, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	keys, rows := fmt.Sprintf(`{"id": %d}`, n), fmt.Sprintf(`{"id": %d, "s": "%[1]d"}`, n)
	if n > 0 {
		keys += fmt.Sprintf(`, {"id": %d}`, n/2)
		rows += fmt.Sprintf(`, {"id": %d, "s": "%d"}`, n/2, n)
	}
	return upserted(t, "["+keys+"]", "["+rows+"]")
}

func create(cat *rest.Catalog, name table.Identifier) error {
	schema, err := iceberg.NewSchemaFromJsonFields(0, columns)
	if err != nil {
		return err
	}
	_, err = cat.CreateTable(ctx, name, schema, catalog.WithProperties(iceberg.Properties{}))
	return err
}

var steps = map[string]func(*table.Table) error{
	"append": func(t *table.Table) error {
		return appended(t, `[{"id": 1, "s": "eider", "grams": 2200},
			{"id": 2, "s": "teal", "grams": 330}, {"id": 3, "s": "mallard", "grams": 1100}]`)
	},
	"append more": func(t *table.Table) error {
		return appended(t, `[{"id": 4, "s": "smew", "grams": null}, {"id": 5, "s": "teal", "grams": 300}]`)
	},
	"overwrite where s = 'teal'": func(t *table.Table) error {
		rows := batch(t, `[{"id": 6, "s": "teal", "grams": 340}]`)
		defer rows.Release()
		_, err := t.Overwrite(ctx, rows, nil, table.WithOverwriteFilter(
			iceberg.EqualTo(iceberg.Reference("s"), "teal")))
		return err
	},
	"delete where id = 1": func(t *table.Table) error {
		_, err := t.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(1)), nil)
		return err
	},
	"write.delete.mode = merge-on-read": func(t *table.Table) error {
		change := t.NewTransaction()
		if err := change.SetProperties(iceberg.Properties{"write.delete.mode": "merge-on-read"}); err != nil {
			return err
		}
		_, err := change.Commit(ctx)
		return err
	},
	"delete where id = 3": func(t *table.Table) error {
		_, err := t.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(3)), nil)
		return err
	},
	"delete the keys 1, 2, 9": func(t *table.Table) error {
		change := t.NewTransaction()
		keys := key(t, `[{"id": 1}, {"id": 2}, {"id": 9}]`)
		if err := change.CommitEqualityDeletes(ctx, []int{1}, keys, nil); err != nil {
			return err
		}
		_, err := change.Commit(ctx)
		return err
	},
	"upsert 3 and 7": func(t *table.Table) error {
		return upserted(t, `[{"id": 3}, {"id": 7}]`,
			`[{"id": 3, "s": null, "grams": 1}, {"id": 7, "s": "smew", "grams": 600}]`)
	},
	"add column seen": func(t *table.Table) error {
		change := t.NewTransaction()
		added := change.UpdateSchema(true, false).AddColumn(
			[]string{"seen"}, iceberg.PrimitiveTypes.Int32, "", false, nil)
		if err := added.Commit(); err != nil {
			return err
		}
		_, err := change.Commit(ctx)
		return err
	},
	"overwrite all": func(t *table.Table) error {
		rows := batch(t, `[{"id": 9, "s": "smew", "grams": 600}]`)
		defer rows.Release()
		_, err := t.Overwrite(ctx, rows, nil)
		return err
	},
}

func upserted(t *table.Table, keys, rows string) error {
	change := t.NewTransaction()
	deletes, err := change.WriteEqualityDeletes(ctx, []int{1}, key(t, keys))
	if err != nil {
		return err
	}
	added := batch(t, rows)
	defer added.Release()
	delta := change.NewRowDelta(nil).AddDeletes(deletes...)
	for file, err := range table.WriteRecords(ctx, t, added.Schema(), array.IterFromReader(added)) {
		if err != nil {
			return err
		}
		delta.AddRows(file)
	}
	if err := delta.Commit(ctx); err != nil {
		return err
	}
	_, err = change.Commit(ctx)
	return err
}

func appended(t *table.Table, rows string) error {
	reader := batch(t, rows)
	defer reader.Release()
	_, err := t.Append(ctx, reader, nil)
	return err
}

// key has the rows of a JSON text in the column id.
func key(t *table.Table, rows string) iter.Seq2[arrow.RecordBatch, error] {
	schema, err := t.Schema().Select(true, "id")
	if err != nil {
		panic(err)
	}
	return array.IterFromReader(of(schema, rows))
}

// batch has the rows of a JSON text in the table's columns.
func batch(t *table.Table, rows string) array.RecordReader {
	return of(t.Schema(), rows)
}

func of(columns *iceberg.Schema, rows string) array.RecordReader {
	schema, err := table.SchemaToArrowSchema(columns, nil, true, false)
	if err != nil {
		panic(err)
	}
	record, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
	if err != nil {
		panic(err)
	}
	reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{record})
	if err != nil {
		panic(err)
	}
	return reader
}
