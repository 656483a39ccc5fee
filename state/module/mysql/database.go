package mysql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// database implements mysql_database.present.
type database struct {
	server
	CharacterSet string `sls:"character_set"`
	Collate      string `sls:"collate"`
}

func (d *database) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, d)
}
func (d *database) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, d)
}

func (d *database) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	rows, err := d.rows(ctx, h,
		"SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = "+
			client.Quoted(d.Name))
	if err != nil {
		return client.Work{}, err
	}
	options := ""
	if d.CharacterSet != "" {
		options += " CHARACTER SET = " + client.Quoted(d.CharacterSet)
	}
	if d.Collate != "" {
		options += " COLLATE = " + client.Quoted(d.Collate)
	}
	if len(rows) == 0 {
		return client.Created("database", d.Name, "CREATE DATABASE "+tick(d.Name)+options), nil
	}
	changed := value.NewMap()
	if d.CharacterSet != "" && !strings.EqualFold(d.CharacterSet, rows[0][0]) {
		changed.Set("character_set", value.NewMap("old", rows[0][0], "new", d.CharacterSet))
	}
	if d.Collate != "" && !strings.EqualFold(d.Collate, rows[0][1]) {
		changed.Set("collate", value.NewMap("old", rows[0][1], "new", d.Collate))
	}
	w := client.Work{Changes: value.NewMap(d.Name, changed), Fine: "the database " + d.Name +
		" is as declared", Would: "change the database " + d.Name}
	if changed.Len() > 0 {
		w.Statements = []string{"ALTER DATABASE " + tick(d.Name) + options}
	}
	return w, nil
}

// databaseAbsent implements mysql_database.absent.
type databaseAbsent struct{ server }

func (d *databaseAbsent) Gone() bool { return true }
func (d *databaseAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, d)
}
func (d *databaseAbsent) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, d)
}

func (d *databaseAbsent) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	if slices.Contains([]string{"mysql", "information_schema", "performance_schema", "sys"}, strings.ToLower(d.Name)) {
		return client.Work{}, diag.Database.Hint(fmt.Errorf("the database %s is the server's own", d.Name), "leave it there")
	}
	rows, err := d.rows(ctx, h, "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = "+client.Quoted(d.Name))
	if err != nil || len(rows) == 0 {
		return client.Work{Fine: "there is no database " + d.Name}, err
	}
	return client.Work{Statements: []string{"DROP DATABASE " + tick(d.Name)}, Changes: value.NewMap(d.Name, "Absent"),
		Would: "drop the database " + d.Name}, nil
}
