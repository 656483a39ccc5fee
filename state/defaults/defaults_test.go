package defaults_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corpus-agent/corpus-agent/state/defaults"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func render(t *testing.T, text string, pillar map[string]any) (string, error) {
	t.Helper()
	tree := fstest.MapFS{
		"app.conf.j2":                 {Data: []byte(text)},
		"salt/config/states/map.j2":   {Data: []byte("{% set port = salt['pillar.get']('app:port', 80) %}")},
		"states/also/included.txt.j2": {Data: []byte("included")},
	}
	return defaults.Render(t.Context(), defaults.Template{Tree: tree, Source: "app.conf.j2", Pillar: pillar})
}

func TestTemplatesWithDefaults(t *testing.T) {
	given := map[string]any{"app": map[string]any{"port": 8080, "hosts": []any{"a", "b"}}}
	for _, c := range []struct {
		text, want string
		pillar     map[string]any
	}{
		{"port={{ salt['pillar.get']('app:port', 80) }}\n", "port=80\n", nil},
		{"port={{ salt['pillar.get']('app:port', 80) }}\n", "port=8080\n", given},
		{"port={{ salt.pillar.get('app:port', default=80) }}", "port=80", nil},
		{"port={{ pillar.get('app', {'port': 1}).port }}", "port=1", nil},
		{"port={{ pillar.app.port }} {{ pillar['app']['port'] }}", "port=8080 8080", given},
		{"port={{ pillar.app | default('none') }}", "port=none", nil},
		{"{% if pillar.get('tls') %}tls{% else %}plain{% endif %}", "plain", nil},
		{"{% if 'app' in pillar %}yes{% endif %}", "yes", given},
		{"{% for h in pillar.app.hosts %}{{ h }} {% endfor %}", "a b ", given},
		{"{% from 'map.j2' import port with context %}{{ port }}", "80", nil},
		{"{% include 'also/included.txt.j2' %}", "included", nil},
	} {
		if got, err := render(t, c.text, c.pillar); err != nil || got != c.want {
			t.Errorf("%s gives %q, %v; want %q", c.text, got, err, c.want)
		}
	}
}

func TestTemplatesThatRequireAHost(t *testing.T) {
	for text, want := range map[string]string{
		"a\nport={{ salt['pillar.get']('app:port') }}": `app.conf.j2:2:27: `,
		"{{ salt['pillar.get']('app:port') }}":         `the pillar key "app:port" has no default`,
		"{{ pillar.get('port') }}":                     `the pillar key "port" has no default`,
		"{{ pillar.port }}":                            `the pillar key "port" has no default`,
		"{{ pillar['app']['port'] }}":                  `the pillar key "app" has no default`,
		"{{ grains.id }}":                              "grains.id is known only on a host",
		"{{ grains['id'] | default('x') }}":            "grains['id'] is known only on a host",
		"{{ grains.get('id', 'x') }}":                  "grains.get is known only on a host",
		"{{ opts.id }}":                                "opts.id is known only on a host",
		"{{ salt['cmd.run']('id') }}":                  "salt['cmd.run'] asks a host",
		"{{ salt.grains.get('id', 'x') }}":             "salt['grains'] asks a host",
		"{{ id }}":                                     "'id' is undefined",
	} {
		got, err := render(t, text, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %q, %v; want the error %s", text, got, err, want)
			continue
		}
		if hint := diag.HintOf(err); !strings.Contains(hint, "package.pillar") {
			t.Errorf("%s: the hint is %q", text, hint)
		}
	}
}
