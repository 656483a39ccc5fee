package benchtree_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/statetest/benchtree"
)

// TestWrite checks that the trees of all programs have the same users and the same number of applications, and their
// main files.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := benchtree.Write(dir, 3); err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, path := range []string{"salt/states/top.sls", "salt/states/apps/files/app.conf.j2", "ansible/site.yml",
		"puppet/site.pp"} {
		if read(path) == "" {
			t.Errorf("%s is empty", path)
		}
	}
	for _, path := range []string{"salt/pillar/users.sls", "ansible/data.json", "puppet/data/common.yaml"} {
		text := read(path)
		for _, u := range benchtree.Users(3) {
			if !strings.Contains(text, u.Name) || !strings.Contains(text, u.Key) {
				t.Errorf("%s lacks %s or its key", path, u.Name)
			}
		}
		if strings.Contains(text, "u0004") {
			t.Errorf("%s has a fourth user", path)
		}
	}
	var data struct{ Users, Apps []map[string]any }
	if err := json.Unmarshal([]byte(read("ansible/data.json")), &data); err != nil || len(data.Users) != 3 ||
		len(data.Apps) != 40 {
		t.Errorf("%d users and %d applications, %v", len(data.Users), len(data.Apps), err)
	}
}
