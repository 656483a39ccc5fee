package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// database implements postgres_database.present.
type database struct {
	server
	Tablespace   string `sls:"tablespace"`
	Encoding     string `sls:"encoding"`
	LCCollate    string `sls:"lc_collate"`
	LCCtype      string `sls:"lc_ctype"`
	Owner        string `sls:"owner"`
	OwnerRecurse bool   `sls:"owner_recurse"`
	Template     string `sls:"template"`
}

func (d *database) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, d)
}
func (d *database) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, d)
}

func (d *database) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	rows, err := d.rows(ctx, h, "",
		`SELECT pg_get_userbyid(datdba), t.spcname, pg_encoding_to_char(encoding), datcollate, datctype `+
			`FROM pg_database d JOIN pg_tablespace t ON t.oid = d.dattablespace WHERE datname = `+client.Quoted(d.Name))
	if err != nil {
		return client.Work{}, err
	}
	if len(rows) == 0 {
		return client.Created("database", d.Name, d.create()), nil
	}
	have := rows[0]
	for _, fixed := range []struct{ what, want, have string }{{"encoding", d.Encoding, have[2]},
		{"lc_collate", d.LCCollate, have[3]}, {"lc_ctype", d.LCCtype, have[4]}} {
		if fixed.want != "" && plainName(fixed.want) != plainName(fixed.have) {
			return client.Work{}, diag.Database.Hint(fmt.Errorf("%s of database %s is %s and cannot become %s", fixed.what,
				d.Name, fixed.have, fixed.want),
				"dump it, drop it, and load it into a new one")
		}
	}
	w := client.Work{Changes: value.NewMap(), Fine: "the database " + d.Name +
		" is as declared", Would: "change the database " + d.Name}
	changed := value.NewMap()
	if d.Owner != "" && d.Owner != have[0] {
		w.Statements = append(w.Statements, fmt.Sprintf("ALTER DATABASE %s OWNER TO %s", ident(d.Name), ident(d.Owner)))
		changed.Set("owner", value.NewMap("old", have[0], "new", d.Owner))
	}
	if d.Tablespace != "" && d.Tablespace != have[1] {
		w.Statements = append(w.Statements,
			fmt.Sprintf("ALTER DATABASE %s SET TABLESPACE %s", ident(d.Name), ident(d.Tablespace)))
		changed.Set("tablespace", value.NewMap("old", have[1], "new", d.Tablespace))
	}
	w.Changes.Set(d.Name, changed)
	return w, nil
}

// plainName returns the name of an encoding or locale for comparisons: UTF8 equals utf-8.
func plainName(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s))
}

func (d *database) create() string {
	text := "CREATE DATABASE " + ident(d.Name)
	for _, f := range []struct{ word, v string }{{" OWNER = ", d.Owner}, {" TEMPLATE = ", d.Template},
		{" TABLESPACE = ", d.Tablespace}} {
		if f.v != "" {
			text += f.word + ident(f.v)
		}
	}
	for _, f := range []struct{ word, v string }{{" ENCODING = ", d.Encoding}, {" LC_COLLATE = ", d.LCCollate},
		{" LC_CTYPE = ", d.LCCtype}} {
		if f.v != "" {
			text += f.word + client.Quoted(f.v)
		}
	}
	return text
}
