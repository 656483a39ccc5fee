package refresh_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish/recovery"
	"github.com/corpus-agent/corpus-agent/artifact/publish/refresh"
)

// TestDamagedFilesAreNamed damages or removes each file that hosts read, of which this publisher has copies: refresh
// signs the timestamp, names the file, and a rebuild restores it. Another role's files, and those of earlier versions,
// are not looked at.
func TestDamagedFilesAreNamed(t *testing.T) {
	t.Parallel()
	damages := map[string]func([]byte) []byte{
		"emptied": func([]byte) []byte { return []byte("{}") },
		"changed": func(data []byte) []byte { // as many bytes as before
			return bytes.Replace(data, []byte(`"`), []byte(`'`), 1)
		},
		"lost": nil,
	}
	for file, named := range map[string]string{"2.myapp~head.json": "myapp~head", "2.myapp.json": "myapp",
		"pages/myapp/": "metadata/pages/myapp/", "2.targets.json": "targets", "snapshot.json": "",
		"1.myapp~head.json": "", "1.targets.json": ""} {
		for how, damage := range damages {
			t.Run(file+" "+how, func(t *testing.T) {
				t.Parallel()
				repo := artifacttest.New(t)
				repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
				earlier := repo.Snapshot()
				repo.Release("myapp", "2", "testing", artifacttest.Files{"app": "2"})
				before := repo.Snapshot()
				key := "metadata/" + file
				for k := range before {
					if earlier[k] == nil && (strings.HasPrefix(k, "metadata/pages/") && file == "pages/myapp/" ||
						strings.HasSuffix(k, ".snapshot.json") && file == "snapshot.json") {
						key = k
					}
				}
				if damage == nil {
					if err := repo.Store.Delete(t.Context(), key); err != nil {
						t.Fatal(err)
					}
				} else {
					repo.Replace(key, damage(before[key]))
				}
				if got := left(t, repo); named == "" && len(got) > 0 || named != "" && (len(got) != 1 ||
					!strings.HasPrefix(got[0].Role, named) || !strings.Contains(got[0].Why, "refresh --rebuild")) {
					t.Fatalf("%s: refresh names %+v", key, got)
				}
				if _, err := repo.Host().Resolve("myapp/testing"); named == "" && err != nil {
					t.Error(err)
				}
				if named == "" {
					return
				}
				rebuilt, err := recovery.Rebuild(t.Context(), repo.Publisher)
				if err != nil || len(rebuilt.Restored) != 1 {
					t.Fatalf("the rebuild restores %v, %v", rebuilt.Restored, err)
				}
				if got := left(t, repo); len(got) > 0 {
					t.Errorf("after the rebuild, refresh names %+v", got)
				}
				if _, err := repo.Host().Resolve("myapp/testing"); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// left refreshes the roles of a store, and returns those that need something else.
func left(t *testing.T, repo *artifacttest.Repo) []refresh.Standing {
	t.Helper()
	list, err := refresh.Roles(t.Context(), repo.Publisher, 0)
	signed := func(s refresh.Standing) bool { return s.Role == "timestamp" && s.Renewed }
	if err != nil || !slices.ContainsFunc(list, signed) {
		t.Fatalf("refreshing gives %+v, %v", list, err)
	}
	return slices.DeleteFunc(list, func(s refresh.Standing) bool { return !s.Left })
}
