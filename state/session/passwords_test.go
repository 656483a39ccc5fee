package session_test

import (
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// hidden is the password in the arguments of states, which must not be in the arguments of a program.
const hidden = "c4nary-pw"

// password is a state with a password in one of its arguments. The programs of the host print an answer if their
// arguments or standard input contain the text before it.
type password struct {
	state     string
	arguments *value.Map
	programs  []string
	answers   []string // pairs of a text and the output for it
	files     []string // of the host: pairs of a path and a content
	fails     bool     // the state fails, since the imitation of the programs is incomplete
}

func passwords() []password {
	login := "https://u:" + hidden + "@h.example/"
	mysql := func(state string, more ...any) password {
		return password{state: state,
			arguments: value.NewMap(append([]any{"name", "x", "connection_pass", hidden}, more...)...),
			programs:  []string{"mysql"},
			answers:   []string{"VERSION", "10.11.3-MariaDB\n"}, fails: true}
	}
	postgres := func(state string, more ...any) password {
		return password{state: state,
			arguments: value.NewMap(append([]any{"name", "x", "db_password", hidden, "db_host", "db.example"}, more...)...),
			programs:  []string{"psql"},
			answers:   []string{"server_version", "150000\n"}, fails: true}
	}
	git := func(state string, more ...any) password {
		return password{state: state,
			arguments: value.NewMap(append([]any{"name", login + "r.git", "target", "/srv/r"}, more...)...),
			programs:  []string{"git"},
			answers: []string{"ls-remote", strings.Repeat("a", 40) + "\tHEAD\n" + strings.Repeat("a", 40) +
				"\trefs/heads/main\n"}, fails: true}
	}
	pip := []string{"list --format=json", "[]"}
	return []password{
		{state: "gem.installed", arguments: value.NewMap("name", "x", "source", login), programs: []string{"gem"}},
		{state: "gem.installed", arguments: value.NewMap("name", "x", "proxy", login, "user", "games"),
			programs: []string{"gem"}},
		{state: "npm.installed", arguments: value.NewMap("name", "git+"+login+"r.git#v1"), programs: []string{"npm"},
			answers: []string{"list", "{}"}},
		{state: "npm.installed", arguments: value.NewMap("pkgs", value.Strings(login+"x.tgz", "y@"+login+"y.tgz")),
			programs: []string{"npm"}, answers: []string{"list", "{}"}},
		{state: "npm.installed", arguments: value.NewMap("name", "x", "registry", login), programs: []string{"npm"},
			answers: []string{"list", "{}"}},
		{state: "pip.installed", arguments: value.NewMap("name", "git+"+login+"r.git@v1#egg=r"), programs: []string{"pip3"},
			answers: pip},
		{state: "pip.installed", arguments: value.NewMap("name", "x @ "+login+"x.whl", "user", "games"),
			programs: []string{"pip3"}, answers: pip},
		{state: "pip.installed", arguments: value.NewMap("editable", "git+"+login+"r.git#egg=r"), programs: []string{"pip3"},
			answers: pip},
		{state: "pip.installed", arguments: value.NewMap("name", "x", "index_url", login, "extra_index_url", login,
			"find_links", login, "proxy", login), programs: []string{"pip3"}, answers: pip},
		{state: "pip.installed", arguments: value.NewMap("requirements", "salt://requirements"), programs: []string{"pip3"},
			answers: pip},
		{state: "pip.installed", arguments: value.NewMap("name", "x", "env_vars", value.NewMap("TOKEN", hidden)),
			programs: []string{"pip3"}, answers: pip},
		{state: "mount.mounted", arguments: value.NewMap("name", "/mnt", "device", "//h/s", "fstype", "cifs", "opts",
			"rw,username=u,password="+hidden, "mkmnt", true, "persist", false),
			programs: []string{"mount"}, files: []string{"/proc/self/mountinfo", "1 0 0:1 / / rw - ext4 /dev/root rw\n"}},
		{state: "pdbedit.managed", arguments: value.NewMap("name", "games", "password", hidden),
			programs: []string{"pdbedit", "smbpasswd"}},
		{state: "pdbedit.managed", arguments: value.NewMap("name", "games", "password", hidden),
			programs: []string{"pdbedit", "smbpasswd"},
			answers:  []string{"--list", "---\nUnix username: games\nNT hash: A70C708517B5DD0EDB67714FE25336EB\n"}},
		{state: "pdbedit.present", arguments: value.NewMap("name", "games", "password", hidden),
			programs: []string{"pdbedit", "smbpasswd"}},
		{state: "debconf.set", arguments: value.NewMap("name", "x", "data",
			value.NewMap("x/password", value.NewMap("type", "password", "value", hidden))),
			programs: []string{"debconf-set-selections", "debconf-get-selections", "debconf-show", "debconf-communicate"},
			fails:    true},
		{state: "docker_container.running", arguments: value.NewMap("name", "c", "image", "i", "environment",
			value.NewMap("PASSWORD", hidden)), programs: []string{"docker"},
			answers: []string{"image inspect", `[{"Id":"sha256:1","Config":{}}]`, "container inspect", "[]"}, fails: true},
		mysql("mysql_user.present", "password", hidden), mysql("mysql_user.present", "password_hash", "*"+hidden),
		mysql("mysql_user.absent"), mysql("mysql_database.present"), mysql("mysql_database.absent"),
		mysql("mysql_grants.present", "grant", "select", "database", "x.*", "user", "u"),
		mysql("mysql_grants.absent", "grant", "select", "database", "x.*", "user", "u"),
		mysql("mysql_query.run", "database", "x", "query", "SET PASSWORD = '"+hidden+"'"),
		mysql("mysql_query.run_file", "database", "x", "query_file", "/srv/query"),
		postgres("postgres_user.present", "password", hidden), postgres("postgres_user.present", "default_password", hidden),
		postgres("postgres_user.absent"),
		postgres("postgres_group.present", "password", hidden), postgres("postgres_group.absent"),
		postgres("postgres_database.present"), postgres("postgres_database.absent"),
		postgres("postgres_extension.present"), postgres("postgres_extension.absent"), postgres("postgres_language.present"),
		postgres("postgres_language.absent"),
		postgres("postgres_schema.present", "dbname", "d"), postgres("postgres_schema.absent", "dbname", "d"),
		postgres("postgres_tablespace.present", "directory", "/srv"), postgres("postgres_tablespace.absent"),
		postgres("postgres_privileges.present", "object_name", "o", "object_type", "table"),
		postgres("postgres_privileges.absent", "object_name", "o", "object_type", "table"),
		{state: "mongodb_user.present", arguments: value.NewMap("name", "x", "passwd", hidden, "user", "root", "password",
			hidden), programs: []string{"mongosh"}, fails: true},
		{state: "mongodb_user.absent", arguments: value.NewMap("name", "x", "user", "root", "password", hidden),
			programs: []string{"mongosh"}, fails: true},
		{state: "ldap.managed", arguments: value.NewMap("name", "ldap://h.example", "connect_spec", value.NewMap("bind",
			value.NewMap("dn", "cn=admin", "password", hidden)), "entries", value.NewList(value.NewMap("cn=a", value.NewList(
			value.NewMap("add", value.NewMap("userPassword", hidden)))))), programs: []string{"ldapsearch", "ldapmodify"}},
		{state: "git.config_set", arguments: value.NewMap("name", "http.extraHeader", "value", "Token: "+hidden, "global",
			true), programs: []string{"git"}},
		{state: "git.config_set", arguments: value.NewMap("name", "a.b", "multivar", value.Strings("x", hidden), "global",
			true), programs: []string{"git"}},
		{state: "rabbitmq_upstream.present", arguments: value.NewMap("name", "x", "uri", "amqp://u:"+hidden+"@h.example"),
			programs: []string{"rabbitmqctl"}},
		git("git.latest", "rev", "main"), git("git.latest", "rev", "main", "name", "https://h.example/r.git", "https_user",
			"u", "https_pass", hidden), git("git.cloned"),
		git("git.cloned", "name", "https://h.example/r.git", "https_user", "u", "https_pass", hidden),
		git("git.detached", "rev", "main"),
		git("git.detached", "rev", "main", "name", "https://h.example/r.git", "https_user", "u", "https_pass", hidden),
	}
}

// TestPasswordsAreInNoArguments runs each state that takes a password with programs that record their arguments.
func TestPasswordsAreInNoArguments(t *testing.T) {
	for _, p := range passwords() {
		t.Run(p.state, func(t *testing.T) {
			ran, received := false, false
			h := statetest.NewHost(t)
			h.Commands = statetest.Commands(func(c host.Command) (host.Output, error) {
				ran = true
				given := strings.Join(c.Argv, " ")
				if strings.Contains(given, hidden) {
					t.Errorf("the password is in the arguments %q", c.Argv)
				}
				received = received || strings.Contains(strings.Join(c.Env, " ")+c.Stdin, hidden) || inEncoded(c.Env) ||
					inFiles(t, h, c)
				for i := 0; i < len(p.answers); i += 2 {
					if strings.Contains(given+c.Stdin, p.answers[i]) {
						return host.Output{Stdout: p.answers[i+1]}, nil
					}
				}
				return host.Output{}, nil
			})
			for _, name := range p.programs {
				h.Put("/usr/bin/"+name, "")
				if err := h.Files.Chmod("/usr/bin/"+name, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			h.Put("/srv/query", "SELECT '"+hidden+"'")
			for i := 0; i < len(p.files); i += 2 {
				h.Put(p.files[i], p.files[i+1])
			}
			err := p.applied(t, h.Host)
			if err != nil && !p.fails {
				t.Errorf("the state fails: %v (%s)", err, diag.HintOf(err))
			}
			if !ran || !received && !p.fails {
				t.Errorf("a program ran: %v; it got the password: %v; the error is %v", ran, received, err)
			}
		})
	}
}

// applied checks and applies a state, also if the check finds no difference.
func (p password) applied(t *testing.T, h *host.Host) error {
	given, _ := settings(t, map[string]string{"states/requirements": "--index-url https://u:" + hidden +
		"@h.example/\ngit+https://u:" + hidden + "@h.example/r.git\nx\n"})
	given.Host = h
	trees, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	given.Trees = trees.Files
	family, function, _ := strings.Cut(p.state, ".")
	resource := families.New(given).Modules()[family][function]()
	call := module.Call{Function: function, Arguments: p.arguments, At: func(string) diag.Pos { return diag.Pos{} }}
	if _, problems := module.Decode(resource, call); len(problems) > 0 {
		t.Fatal(problems)
	}
	d, err := resource.Check(t.Context(), h)
	if err != nil {
		return err
	}
	_, err = resource.Apply(t.Context(), h, d)
	return err
}

// inEncoded reports whether an environment has an encoded login for npm.
func inEncoded(env []string) bool {
	return slices.ContainsFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasSuffix(name, ":_auth")
	})
}

// inFiles reports whether a file in the arguments or the environment of a command holds the password. Only the user of
// the command may be able to read the file.
func inFiles(t *testing.T, h *statetest.Host, c host.Command) (found bool) {
	t.Helper()
	owner := 0
	if c.As != nil {
		owner = int(c.As.UID)
	}
	for _, word := range append(slices.Clone(c.Argv[1:]), c.Env...) {
		if _, v, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "GEMRC=") {
			word = v
		}
		if !path.IsAbs(word) || !strings.Contains(h.Text(word), "h.example") {
			continue
		}
		found = true
		info, err := h.Files.Stat(word)
		if err != nil || info.Mode.Perm() != 0o600 || info.UID != owner {
			t.Errorf("%s is of user %d with mode %v, want user %d and 0600; %v", word, info.UID, info.Mode, owner, err)
		}
	}
	return found
}

// TestEveryPasswordIsTested checks that passwords lists every state with an argument that takes a password.
func TestEveryPasswordIsTested(t *testing.T) {
	exempt := map[string]string{
		"user.present":      "package host gives chpasswd a hash by its standard input: TestAccountCommands",
		"archive.extracted": "is refused: encrypted archives are not read",
		"git.present":       "the account of a user: not used", "git.config_unset": "the account of a user: not used",
		"rabbitmq_user.present": "rabbitmqctl reads it from its standard input; the broker of the tests of rabbitmq " +
			"takes it from nowhere else",
		"pdbedit.absent": "", "module.run": "calls functions by their own arguments",
	}
	secret := regexp.MustCompile(`(^|_)(password|passwd|pass|secret|token)($|_hash$)`)
	given, _ := settings(t, nil)
	tried := passwords()
	for _, name := range families.New(given).Modules().Functions() {
		family, function, _ := strings.Cut(name, ".")
		for _, argument := range argumentNames(reflect.TypeOf(families.New(given).Modules()[family][function]())) {
			if !secret.MatchString(argument) {
				continue
			}
			if _, ok := exempt[name]; !ok && !slices.ContainsFunc(tried, func(p password) bool { return p.state == name }) {
				t.Errorf("%s takes %s and is not tested: add it to passwords, or to exempt with a reason", name,
					argument)
			}
		}
	}
}

// argumentNames lists the arguments that a resource decodes, by the tags of its fields.
func argumentNames(of reflect.Type) (all []string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	for f := range of.NumField() {
		field := of.Field(f)
		if tag, _, _ := strings.Cut(field.Tag.Get("sls"), ","); tag != "" {
			all = append(all, tag)
		} else if field.Anonymous {
			all = append(all, argumentNames(field.Type)...)
		}
	}
	return all
}
