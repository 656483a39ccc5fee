package packaging_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/corpus-agent/corpus-agent/packaging"
)

func treeOf(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, content := range files {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return tree
}

func TestMissing(t *testing.T) {
	for what, c := range map[string]struct {
		top  string
		want []string
	}{
		"there, by name and package": {"base:\n  '*':\n    - web\n    - db\n    - db.server\n", nil},
		"two that are missing":       {"base:\n  '*': [wbe, db.sever, web]\n", []string{"wbe", "db.sever"}},
		"matchers are not names": {"base:\n  'os:Debian':\n    - match: grain\n    - ignore_missing: True\n    - web\n",
			nil},
		"a pattern": {"base:\n  '*':\n    - db.*\n    - no.*\n", nil},
		"names that templates give": {"{% set roles = ['x'] %}\nbase:\n  '*':\n{% for r in roles %}\n    - role.{{ r }}\n" +
			"{% endfor %}\n    - wbe\n", []string{"wbe"}},
		"in a comment":                {"base:\n  '*':\n    - web # not wbe\n    # - wbe\n", nil},
		"in a comment of a template":  {"base:\n  '*':\n    - web\n{#- The wbe (100 %}) -#}\n", nil},
		"a program":                   {"#!py\ndef run(): return {'base': {'*': ['wbe']}}\n", nil},
		"a target that is commented":  {"base:\n  'G@role:web and not E@db\\d':\n    - web\n", nil},
		"as a path, and with its end": {"base:\n  '*':\n    - db/server\n", nil},
	} {
		tree := treeOf(map[string]string{"states/top.sls": c.top, "states/web.sls": "", "states/db/init.sls": "",
			"states/db/server.sls": ""})
		var want []string
		for _, name := range c.want {
			want = append(want, "states/top.sls: "+name)
		}
		if got, err := packaging.Missing(tree); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", what, got, err, want)
		}
	}
}

func TestThroughNext(t *testing.T) {
	got, err := packaging.ThroughNext(treeOf(map[string]string{
		"app.service": "[Service]\nExecStart=/usr/bin/python3 /srv/service/next/app.py\n" +
			"WorkingDirectory=/srv/service/current\n# /srv/service/next\n",
		"app@.service.j2": "[Service]\nExecStart=/srv/projects/app/next/bin/app %i\n",
		"states/app.sls": "/usr/local/bin/app:\n  file.symlink:\n    - target: /srv/base/next/bin/app\n/etc/a:\n" +
			"  file.managed:\n    - source: /srv/service/next/a\n",
		"states/unit.sls": "/etc/systemd/system/a.service:\n  file.managed:\n    - contents: |\n        [Service]\n" +
			"        ExecStart=/srv/service/next\n",
		"states/make.sls":         "make --prefix=/srv/service/next/out:\n  cmd.run:\n    - cwd: /srv/service/next\n",
		"states/nextcloud.sls":    "/etc/b:\n  file.symlink:\n    - target: /srv/service/nextcloud\n",
		"doc/notes.md":            "ExecStart=/srv/service/next\n",
		"etc/systemd/a.d/10.conf": "[Service]\nEnvironmentFile=-/srv/service/next/env\n",
	}))
	want := []string{"app.service:2", "app@.service.j2:2", "etc/systemd/a.d/10.conf:2", "states/app.sls:3",
		"states/unit.sls:5"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestForeign(t *testing.T) {
	tree := treeOf(map[string]string{
		"corpus.yaml": "units: [wbe.service]\n", "lib/app.service": "", "states/a.sls": "nginx:\n  pkg.installed: []\n",
		"bin/install": "systemctl enable worker@1\n",
	})
	got, err := packaging.Foreign(tree,
		[]string{"app.service", "lib/app.service", "nginx.service", "worker@.service", "wbe.service"})
	if err != nil || !slices.Equal(got, []string{"wbe.service"}) {
		t.Errorf("%q, %v", got, err)
	}
}
