package packaging_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/corpus-agent/corpus-agent/packaging"
)

func TestUnusedSLSFiles(t *testing.T) {
	const top = "salt/config/states/top.sls"
	cases := []struct {
		what  string
		files map[string]string
		want  []string
	}{
		{"a tree without a top file", map[string]string{"states/a.sls": ""}, nil},
		{"by name, by package and by path", map[string]string{
			top: "base:\n  '*':\n    - web\n    - db.server\n", "salt/config/states/web/init.sls": "",
			"salt/config/states/db/server.sls": "", "salt/config/states/old.sls": "",
		}, []string{"salt/config/states/old.sls"}},
		{"in a line", map[string]string{"states/top.sls": "base: {'*': [a], 'G@role:b': [c]}", "states/a.sls": "",
			"states/b.sls": "", "states/c.sls": ""}, []string{"states/b.sls"}},
		{"included, and relative", map[string]string{
			"states/top.sls": "base:\n  '*': [app]\n", "states/app/init.sls": "include:\n  - .users\n  - ..common\n",
			"states/app/users.sls": "", "states/app/unused.sls": "", "states/common.sls": "",
		}, []string{"states/app/unused.sls"}},
		{"relative to a file that is not a package", map[string]string{"states/top.sls": "base: {'*': [app.web]}",
			"states/app/web.sls": "include: [.users]", "states/app/users.sls": "", "states/users.sls": ""},
			[]string{"states/users.sls"}},
		{"a computed name", map[string]string{"states/top.sls": "base:\n  '*':\n    - role.{{ grains.role }}\n",
			"states/role/a.sls": "", "states/other.sls": ""}, []string{"states/other.sls"}},
		{"any name", map[string]string{"states/top.sls": "base:\n  '*':\n{% for s in pillar.states %}\n    - {{ s }}\n" +
			"{% endfor %}\n", "states/a.sls": ""}, nil},
		{"any include", map[string]string{"states/top.sls": "base: {'*': [a]}",
			"states/a.sls": "include:\n  - b\n  - {{ x }}\n", "states/b.sls": "", "states/c.sls": ""}, nil},
		{"in a comment", map[string]string{"states/top.sls": "base:\n  '*':\n    - a\n    # - b\n{# - c #}\n",
			"states/a.sls": "", "states/b.sls": "", "states/c.sls": ""}, []string{"states/b.sls", "states/c.sls"}},
		{"a program", map[string]string{"states/top.sls": "#!py\ndef run(): return {}\n", "states/a.sls": ""}, nil},
		{"pillar", map[string]string{"pillar/top.sls": "base: {'*': [a]}", "pillar/a.sls": "x: 1", "pillar/b.sls": "",
			"salt/config/pillar/c.sls": ""}, []string{"pillar/b.sls"}},
		{"includes in a cycle", map[string]string{"states/top.sls": "base: {'*': [a]}", "states/a.sls": "include: [b]",
			"states/b.sls": "include: [a]"}, nil},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			tree := fstest.MapFS{}
			for name, content := range c.files {
				tree[name] = &fstest.MapFile{Data: []byte(content)}
			}
			if got, err := packaging.UnusedSLS(tree); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v, %v; want %v", got, err, c.want)
			}
		})
	}
}
