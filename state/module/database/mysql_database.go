package database

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// myDatabase is mysql_database.present.
type myDatabase struct {
	mysql
	CharacterSet string `sls:"character_set"`
	Collate      string `sls:"collate"`
}

func (d *myDatabase) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, d)
}
func (d *myDatabase) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, d)
}

func (d *myDatabase) work(ctx context.Context, h *host.Host) (work, error) {
	rows, err := d.rows(ctx, h, "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = "+quoted(d.Name))
	if err != nil {
		return work{}, err
	}
	options := ""
	if d.CharacterSet != "" {
		options += " CHARACTER SET = " + quoted(d.CharacterSet)
	}
	if d.Collate != "" {
		options += " COLLATE = " + quoted(d.Collate)
	}
	if len(rows) == 0 {
		return created("database", d.Name, "CREATE DATABASE "+tick(d.Name)+options), nil
	}
	changed := value.NewMap()
	if d.CharacterSet != "" && !strings.EqualFold(d.CharacterSet, rows[0][0]) {
		changed.Set("character_set", value.NewMap("old", rows[0][0], "new", d.CharacterSet))
	}
	if d.Collate != "" && !strings.EqualFold(d.Collate, rows[0][1]) {
		changed.Set("collate", value.NewMap("old", rows[0][1], "new", d.Collate))
	}
	w := work{changes: value.NewMap(d.Name, changed), fine: "the database " + d.Name + " is as declared", would: "change the database " + d.Name}
	if changed.Len() > 0 {
		w.statements = []string{"ALTER DATABASE " + tick(d.Name) + options}
	}
	return w, nil
}

// myDatabaseAbsent is mysql_database.absent.
type myDatabaseAbsent struct{ mysql }

func (d *myDatabaseAbsent) gone() bool { return true }
func (d *myDatabaseAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, d)
}
func (d *myDatabaseAbsent) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, d)
}

func (d *myDatabaseAbsent) work(ctx context.Context, h *host.Host) (work, error) {
	if slices.Contains([]string{"mysql", "information_schema", "performance_schema", "sys"}, strings.ToLower(d.Name)) {
		return work{}, diag.WithHint(fmt.Errorf("the database %s is the server's own", d.Name), "leave it there")
	}
	rows, err := d.rows(ctx, h, "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = "+quoted(d.Name))
	if err != nil || len(rows) == 0 {
		return work{fine: "there is no database " + d.Name}, err
	}
	return work{statements: []string{"DROP DATABASE " + tick(d.Name)}, changes: value.NewMap(d.Name, "Absent"), would: "drop the database " + d.Name}, nil
}
