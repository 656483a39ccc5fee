package npm

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// installed implements npm.installed.
type installed struct {
	npm
	Name           string `sls:"name"`
	Pkgs           any    `sls:"pkgs"`
	ForceReinstall bool   `sls:"force_reinstall"`
	Registry       string `sls:"registry"`
	Env            any    `sls:"env"`

	todo  []string
	login []string // environment variables with the credentials of the packages' URLs
}

func (n *installed) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if what, err := client.Awaits(h, n.program(n.Env)); err != nil || what != "" {
		return module.Awaits(what, "install "+redact.URLs(n.Name)), err
	}
	have, err := n.list(ctx, h, n.Env)
	if err != nil {
		return module.Diff{}, err
	}
	wanted := n.compare(have)
	if len(n.todo) == 0 {
		return module.Diff{Comment: strings.Join(wanted, ", ") + " is installed"}, nil
	}
	return module.Diff{Changes: value.NewMap("old", value.NewList(), "new", value.Strings(n.todo...)),
		Comment: "would install " + strings.Join(n.todo, ", ")}, nil
}

// compare records in n.todo the wanted packages that have to be installed. It returns all wanted packages, without
// credentials.
func (n *installed) compare(have map[string]string) (wanted []string) {
	wanted = client.Packages(n.Pkgs)
	if n.Pkgs == nil {
		wanted = []string{n.Name}
	}
	wanted, n.login = withoutLogins(wanted)
	for _, text := range wanted {
		name, version := split(text)
		is, ok := have[name]
		if !ok || version != "" && version != "latest" && version != is || n.ForceReinstall {
			n.todo = append(n.todo, text)
		}
	}
	return wanted
}

func (n *installed) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	program := n.program(n.Env)
	if what, err := client.Awaits(h, program); err != nil || what != "" {
		return module.Report{}, client.OrMissing(err, program, what)
	}
	args := []string{"install", "--silent"}
	if n.Dir == "" {
		args = append(args, "--global")
	}
	if n.Registry != "" {
		program.Env = append(program.Env, "npm_config_registry="+n.Registry)
	}
	program.Env = append(program.Env, n.login...)
	if _, err := program.Trusting(n.todo...).Do(ctx, h, append(args, n.todo...)...); err != nil {
		return module.Report{}, diag.Library.Hint(err, "look at the name and the version, and at the registry that npm asks")
	}
	return client.Done(d, "installed %s", strings.Join(n.todo, ", ")), nil
}

// withoutLogins removes credentials from the URLs of packages, since every user can read the arguments of a
// program. env passes them to git for repositories, and to npm for archives.
func withoutLogins(packages []string) (plain, env []string) {
	plain, env = process.GitLogins(packages...)
	for i, text := range packages {
		if text == plain[i] {
			continue
		}
		_, rest, _ := strings.Cut(plain[i], "://")
		server, path, _ := strings.Cut(rest, "/")
		_, login, password := redact.Login(text)
		if password != "" {
			login += ":" + password
		}
		key := "npm_config_//" + server + "/"
		if i := strings.LastIndexByte(path, '/'); i >= 0 {
			key += path[:i+1]
		}
		env = append(env, key+":_auth="+base64.StdEncoding.EncodeToString([]byte(login)))
	}
	return plain, env
}
