package database

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// created is the work of a thing that is not there.
func created(what, name string, statements ...string) work {
	return work{statements: statements, changes: value.NewMap(name, "Present"), would: fmt.Sprintf("create the %s %s", what, name)}
}

// pgDatabase is postgres_database.present.
type pgDatabase struct {
	postgres
	Tablespace   string `sls:"tablespace"`
	Encoding     string `sls:"encoding"`
	LCCollate    string `sls:"lc_collate"`
	LCCtype      string `sls:"lc_ctype"`
	Owner        string `sls:"owner"`
	OwnerRecurse bool   `sls:"owner_recurse"`
	Template     string `sls:"template"`
}

func (d *pgDatabase) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, d)
}
func (d *pgDatabase) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, d)
}

func (d *pgDatabase) work(ctx context.Context, h *host.Host) (work, error) {
	rows, err := d.rows(ctx, h, "", `SELECT pg_get_userbyid(datdba), t.spcname, pg_encoding_to_char(encoding), datcollate, datctype `+
		`FROM pg_database d JOIN pg_tablespace t ON t.oid = d.dattablespace WHERE datname = `+quoted(d.Name))
	if err != nil {
		return work{}, err
	}
	if len(rows) == 0 {
		return created("database", d.Name, d.create()), nil
	}
	have := rows[0]
	for _, fixed := range []struct{ what, want, have string }{{"encoding", d.Encoding, have[2]}, {"lc_collate", d.LCCollate, have[3]}, {"lc_ctype", d.LCCtype, have[4]}} {
		if fixed.want != "" && plainName(fixed.want) != plainName(fixed.have) {
			return work{}, diag.WithHint(fmt.Errorf("%s of database %s is %s and cannot become %s", fixed.what, d.Name, fixed.have, fixed.want),
				"dump it, drop it, and load it into a new one")
		}
	}
	w := work{changes: value.NewMap(), fine: "the database " + d.Name + " is as declared", would: "change the database " + d.Name}
	changed := value.NewMap()
	if d.Owner != "" && d.Owner != have[0] {
		w.statements = append(w.statements, fmt.Sprintf("ALTER DATABASE %s OWNER TO %s", ident(d.Name), ident(d.Owner)))
		changed.Set("owner", value.NewMap("old", have[0], "new", d.Owner))
	}
	if d.Tablespace != "" && d.Tablespace != have[1] {
		w.statements = append(w.statements, fmt.Sprintf("ALTER DATABASE %s SET TABLESPACE %s", ident(d.Name), ident(d.Tablespace)))
		changed.Set("tablespace", value.NewMap("old", have[1], "new", d.Tablespace))
	}
	w.changes.Set(d.Name, changed)
	return w, nil
}

// plainName is the name of an encoding or a locale as they are compared: UTF8 is utf-8.
func plainName(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s))
}

func (d *pgDatabase) create() string {
	text := "CREATE DATABASE " + ident(d.Name)
	for _, f := range []struct{ word, v string }{{" OWNER = ", d.Owner}, {" TEMPLATE = ", d.Template}, {" TABLESPACE = ", d.Tablespace}} {
		if f.v != "" {
			text += f.word + ident(f.v)
		}
	}
	for _, f := range []struct{ word, v string }{{" ENCODING = ", d.Encoding}, {" LC_COLLATE = ", d.LCCollate}, {" LC_CTYPE = ", d.LCCtype}} {
		if f.v != "" {
			text += f.word + quoted(f.v)
		}
	}
	return text
}

// pgKind is a kind of thing that is dropped by its name.
type pgKind struct{ what, find, drop string }

func pgDatabases() pgKind {
	return pgKind{"database", "SELECT 1 FROM pg_database WHERE datname = ", "DROP DATABASE "}
}
func pgRoles() pgKind { return pgKind{"role", "SELECT 1 FROM pg_roles WHERE rolname = ", "DROP ROLE "} }
func pgExtensions() pgKind {
	return pgKind{"extension", "SELECT 1 FROM pg_extension WHERE extname = ", "DROP EXTENSION "}
}
func pgLanguages() pgKind {
	return pgKind{"language", "SELECT 1 FROM pg_language WHERE lanname = ", "DROP LANGUAGE "}
}
func pgTablespaces() pgKind {
	return pgKind{"tablespace", "SELECT 1 FROM pg_tablespace WHERE spcname = ", "DROP TABLESPACE "}
}

// pgAbsent is the absent of what is dropped by its name.
type pgAbsent struct {
	postgres
	Cascade  bool `sls:"cascade"`
	IfExists any  `sls:"if_exists"` // what is not there is not dropped
	Restrict any  `sls:"restrict"`  // what others hang on is not dropped, unless cascade is set

	kind pgKind
}

func (a *pgAbsent) gone() bool { return true }
func (a *pgAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, a)
}
func (a *pgAbsent) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, a)
}

func (a *pgAbsent) work(ctx context.Context, h *host.Host) (work, error) {
	_, ok, err := a.one(ctx, h, "", a.kind.find+quoted(a.Name))
	if err != nil || !ok {
		return work{fine: fmt.Sprintf("there is no %s %s", a.kind.what, a.Name)}, err
	}
	statement := a.kind.drop + ident(a.Name)
	if a.Cascade {
		statement += " CASCADE"
	}
	return work{statements: []string{statement}, changes: value.NewMap(a.Name, "Absent"), would: fmt.Sprintf("drop the %s %s", a.kind.what, a.Name)}, nil
}

// pgExtension is postgres_extension.present.
type pgExtension struct {
	postgres
	IfNotExists any    `sls:"if_not_exists"`
	Schema      string `sls:"schema"`
	ExtVersion  string `sls:"ext_version"`
	FromVersion any    `sls:"from_version"`
}

func (e *pgExtension) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, e)
}
func (e *pgExtension) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, e)
}

func (e *pgExtension) work(ctx context.Context, h *host.Host) (work, error) {
	rows, err := e.rows(ctx, h, "", "SELECT extversion, nspname FROM pg_extension x JOIN pg_namespace n ON n.oid = x.extnamespace WHERE extname = "+quoted(e.Name))
	if err != nil {
		return work{}, err
	}
	if len(rows) == 0 {
		statement := "CREATE EXTENSION " + ident(e.Name)
		if e.Schema != "" {
			statement += " SCHEMA " + ident(e.Schema)
		}
		if e.ExtVersion != "" {
			statement += " VERSION " + quoted(e.ExtVersion)
		}
		return work{statements: []string{statement}, changes: value.NewMap(e.Name, "Installed"), would: "create the extension " + e.Name}, nil
	}
	w := work{changes: value.NewMap(e.Name, "Upgraded"), fine: "the extension " + e.Name + " is there", would: "change the extension " + e.Name}
	if e.ExtVersion != "" && e.ExtVersion != rows[0][0] {
		w.statements = append(w.statements, fmt.Sprintf("ALTER EXTENSION %s UPDATE TO %s", ident(e.Name), quoted(e.ExtVersion)))
	}
	if e.Schema != "" && e.Schema != rows[0][1] {
		w.statements = append(w.statements, fmt.Sprintf("ALTER EXTENSION %s SET SCHEMA %s", ident(e.Name), ident(e.Schema)))
	}
	return w, nil
}

// pgLanguage is postgres_language.present.
type pgLanguage struct{ postgres }

func (l *pgLanguage) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, l)
}
func (l *pgLanguage) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, l)
}

func (l *pgLanguage) work(ctx context.Context, h *host.Host) (work, error) {
	_, ok, err := l.one(ctx, h, "", pgLanguages().find+quoted(l.Name))
	if err != nil || ok {
		return work{fine: "the language " + l.Name + " is there"}, err
	}
	return created("language", l.Name, "CREATE LANGUAGE "+ident(l.Name)), nil
}

// pgSchema is postgres_schema.present.
type pgSchema struct {
	postgres
	DBName string `sls:"dbname,required"`
	Owner  string `sls:"owner"`
}

func (s *pgSchema) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, s)
}
func (s *pgSchema) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, s)
}

func (s *pgSchema) run(ctx context.Context, h *host.Host, statements []string) error {
	return s.runIn(ctx, h, s.DBName, statements)
}

func (s *pgSchema) work(ctx context.Context, h *host.Host) (work, error) {
	owner, ok, err := s.one(ctx, h, s.DBName, "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = "+quoted(s.Name))
	if err != nil {
		return work{}, err
	}
	if !ok {
		statement := "CREATE SCHEMA " + ident(s.Name)
		if s.Owner != "" {
			statement += " AUTHORIZATION " + ident(s.Owner)
		}
		return created("schema", s.Name, statement), nil
	}
	w := work{fine: "the schema " + s.Name + " is as declared", would: "change the schema " + s.Name}
	if s.Owner != "" && s.Owner != owner {
		w.statements = []string{fmt.Sprintf("ALTER SCHEMA %s OWNER TO %s", ident(s.Name), ident(s.Owner))}
		w.changes = value.NewMap(s.Name, value.NewMap("owner", value.NewMap("old", owner, "new", s.Owner)))
	}
	return w, nil
}

// pgSchemaAbsent is postgres_schema.absent.
type pgSchemaAbsent struct {
	postgres
	DBName string `sls:"dbname,required"`
}

func (s *pgSchemaAbsent) gone() bool { return true }
func (s *pgSchemaAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, s)
}
func (s *pgSchemaAbsent) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, s)
}

func (s *pgSchemaAbsent) run(ctx context.Context, h *host.Host, statements []string) error {
	return s.runIn(ctx, h, s.DBName, statements)
}

func (s *pgSchemaAbsent) work(ctx context.Context, h *host.Host) (work, error) {
	_, ok, err := s.one(ctx, h, s.DBName, "SELECT 1 FROM pg_namespace WHERE nspname = "+quoted(s.Name))
	if err != nil || !ok {
		return work{fine: "there is no schema " + s.Name}, err
	}
	return work{statements: []string{"DROP SCHEMA " + ident(s.Name)}, changes: value.NewMap(s.Name, "Absent"), would: "drop the schema " + s.Name}, nil
}

// pgTablespace is postgres_tablespace.present.
type pgTablespace struct {
	postgres
	Directory string     `sls:"directory,required"`
	Options   *value.Map `sls:"options"`
	Owner     string     `sls:"owner"`
}

func (s *pgTablespace) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, s)
}
func (s *pgTablespace) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, s)
}

func (s *pgTablespace) work(ctx context.Context, h *host.Host) (work, error) {
	rows, err := s.rows(ctx, h, "", "SELECT pg_get_userbyid(spcowner), pg_tablespace_location(oid) FROM pg_tablespace WHERE spcname = "+quoted(s.Name))
	if err != nil {
		return work{}, err
	}
	if len(rows) == 0 {
		statement := "CREATE TABLESPACE " + ident(s.Name)
		if s.Owner != "" {
			statement += " OWNER " + ident(s.Owner)
		}
		statement += " LOCATION " + quoted(s.Directory)
		var options []string
		for key, v := range s.Options.All() {
			options = append(options, ident(value.Str(key))+" = "+quoted(value.Str(v)))
		}
		if len(options) > 0 {
			statement += " WITH (" + strings.Join(options, ", ") + ")"
		}
		return created("tablespace", s.Name, statement), nil
	}
	if rows[0][1] != s.Directory {
		return work{}, diag.WithHint(fmt.Errorf("the tablespace %s is in %s and cannot move to %s", s.Name, rows[0][1], s.Directory), "make another one, and move what is in it")
	}
	w := work{fine: "the tablespace " + s.Name + " is as declared", would: "change the tablespace " + s.Name}
	if s.Owner != "" && s.Owner != rows[0][0] {
		w.statements = []string{fmt.Sprintf("ALTER TABLESPACE %s OWNER TO %s", ident(s.Name), ident(s.Owner))}
		w.changes = value.NewMap(s.Name, value.NewMap("owner", value.NewMap("old", rows[0][0], "new", s.Owner)))
	}
	return w, nil
}
