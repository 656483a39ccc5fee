package archive_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/archive"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestArchivesSetNoPrivilegedBits extracts setuid programs and world-writable files, with and without the arguments
// that keep their modes.
func TestArchivesSetNoPrivilegedBits(t *testing.T) {
	data := tarOf(item{name: "app/", mode: 0o2777}, item{name: "app/sh", text: "x", mode: 0o4755},
		item{name: "app/tool", text: "x", mode: 0o2775}, item{name: "app/run.sh", text: "x", mode: 0o777},
		item{name: "app/tmp/", mode: 0o1777})
	for arguments, want := range map[string]string{
		"":                  "app 775 sh 755 tool 775 run.sh 775 tmp 1777",
		"options -xvf":      "app 775 sh 755 tool 775 run.sh 775 tmp 1777",
		"user root":         "app 775 sh 755 tool 775 run.sh 775 tmp 1777",
		"preserve true":     "app 2777 sh 4755 tool 2775 run.sh 777 tmp 1777",
		"options --extract": "app 775 sh 755 tool 775 run.sh 775 tmp 1777",
		"options -xpf":      "app 2777 sh 4755 tool 2775 run.sh 777 tmp 1777",
	} {
		h, dir := hostWith(t, data)
		given := []any{"name", "/opt", "source", "/srv/a.tar"}
		if name, v, ok := strings.Cut(arguments, " "); ok && v == "true" {
			given = append(given, name, true)
		} else if ok {
			given = append(given, name, v)
		}
		if arguments == "user root" && os.Geteuid() != 0 {
			continue
		}
		if arguments == "user root" {
			if err := os.WriteFile(filepath.Join(dir, "etc/passwd"), []byte("root:x:0:0::/root:/bin/sh\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		resource := archive.Functions(served{})["extracted"]()
		if _, problems := module.Decode(resource, module.Call{Arguments: value.NewMap(given...)}); len(problems) > 0 {
			t.Fatal(problems)
		}
		d, err := resource.Check(context.Background(), h)
		if err != nil {
			t.Fatal(err)
		}
		const removed = "setuid and setgid bits of app app/sh app/tool, " +
			"the permission of all users to write of app app/run.sh"
		if strings.Contains(d.Comment, removed) == strings.Contains(want, "4755") {
			t.Errorf("with %q the comment is %s", arguments, d.Comment)
		}
		if _, err := resource.Apply(context.Background(), h, d); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range []string{"app", "app/sh", "app/tool", "app/run.sh", "app/tmp"} {
			var st unix.Stat_t
			if err := unix.Lstat(filepath.Join(dir, "opt", name), &st); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %o", filepath.Base(name), st.Mode&0o7777))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("with %q: %s, want %s", arguments, strings.Join(got, " "), want)
		}
	}
}
