package needs_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corpus-agent/corpus-agent/artifact/needs"
)

// TestScriptsRequireInterpreters checks the parsing of first lines, and the sentences about interpreters that a host
// lacks.
func TestScriptsRequireInterpreters(t *testing.T) {
	release := fstest.MapFS{"text": {Data: []byte("#!/usr/bin/perl\n")}, "bin/empty": {Mode: 0o755}}
	for name, line := range map[string]string{
		"bin/a": "#!/usr/bin/perll\n", "bin/b": "#! /bin/sh -e", "bin/c": "#!/usr/bin/env rubyy\n",
		"bin/d": "#!/usr/bin/env -S LANG=C node20 --inspect\n", "bin/own": "#!/srv/service/current/venv/bin/python3\n",
		"bin/prefixed": "#!/opt/web/bin/python3\n", "bin/relative": "#!venv/bin/python3\n", "bin/program": "\x7fELF",
		"bin/long": "#!/" + strings.Repeat("x", 1000),
	} {
		release[name] = &fstest.MapFile{Data: []byte(line), Mode: 0o755}
	}
	found, err := needs.Scripts(release, "/srv", "/opt/web")
	if err != nil {
		t.Fatal(err)
	}
	long := "/" + strings.Repeat("x", 253)
	want := map[string]string{"/usr/bin/perll": "bin/a", "/bin/sh": "bin/b", "/usr/bin/env": "bin/c", "rubyy": "bin/c",
		"node20": "bin/d", long: "bin/long"}
	if !maps.Equal(found, want) {
		t.Errorf("the scripts need %v, want %v", found, want)
	}
	delete(found, long)
	absent, err := needs.Absent(found,
		needs.Host{Root: fstest.MapFS{"bin/sh": {}, "usr/bin/env": {}, "usr/local/bin/node20": {}}})
	if text := []string{"/usr/bin/perll (bin/a)", "rubyy (bin/c)"}; err != nil || !slices.Equal(absent, text) {
		t.Errorf("the host lacks %q, %v, want %q", absent, err, text)
	}
}
