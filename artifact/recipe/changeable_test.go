package recipe_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

func TestTemplatesThatTheUserMayChangeAreNamed(t *testing.T) {
	sls := `/etc/a:
  file.managed:
    - source: /srv/service/next/app/cache/a.j2
    - template: jinja

/etc/b:
  file.managed:
    - source: /srv/service/next/app/cache/plain
/etc/c:
  file.managed: [{source: 'salt://app/conf.j2'}, {template: jinja}]
/etc/d:
  file.managed:
    - template: jinja
    - source: {{ pillar['home'] }}/data/d.j2
`
	tree := fstest.MapFS{"states/web.sls": {Data: []byte(sls)}, "states/top.sls": {Data: []byte("base: {'*': [web]}")}}
	got, err := recipe.Changeable(tree, []string{"app/cache"})
	want := []string{"states/web.sls:3 /srv/service/next/app/cache/a.j2",
		"states/web.sls:14 {{ pillar['home'] }}/data/d.j2"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("found %q, %v; want %q", got, err, want)
	}
}
