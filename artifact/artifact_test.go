package artifact_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
)

func TestNamesStayInPathsAndKeys(t *testing.T) {
	for name, ok := range map[string]bool{
		"myapp": true, "my-app.2": true, "A_b": true, strings.Repeat("a", 63): true,
		"": false, ".": false, "..": false, "-x": false, "a/b": false, "a b": false, "a\x00": false, "é": false,
		strings.Repeat("a", 64): false,
	} {
		if err := artifact.CheckProject(name); (err == nil) != ok {
			t.Errorf("project %q: %v", name, err)
		}
		if err := artifact.CheckChannel(name); (err == nil) != ok {
			t.Errorf("channel %q: %v", name, err)
		}
	}
	for version, ok := range map[string]bool{"1.0+git~3": true, "2024-01-01": true, "": false, "1/0": false, "~1": false} {
		if err := artifact.CheckVersion(version); (err == nil) != ok {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

func TestVersionsAreSortedNumerically(t *testing.T) {
	want := []string{"0.9", "1.0", "1.0-rc1", "1.2", "1.10", "1.10.1", "10", "a"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, artifact.CompareVersions)
	if !slices.Equal(got, want) {
		t.Errorf("sorted %v, want %v", got, want)
	}
}

func TestRefsDigestsAndFormatsAreChecked(t *testing.T) {
	if r, err := artifact.ParseRef("myapp/testing"); err != nil || r.String() != "myapp/testing" {
		t.Errorf("ParseRef = %v, %v", r, err)
	}
	for _, bad := range []string{"myapp", "myapp/", "/testing", "a/b/c"} {
		if _, err := artifact.ParseRef(bad); err == nil {
			t.Errorf("%q was accepted as a channel", bad)
		}
	}
	good := "sha256:" + strings.Repeat("Ab", 32)
	if d, err := artifact.ParseDigest(good); err != nil || d.Short() != "abababab" {
		t.Errorf("ParseDigest = %v, %v", d, err)
	}
	for _, bad := range []string{"", "sha256:", "sha256:zz", "md5:" + strings.Repeat("ab", 32),
		"sha256:" + strings.Repeat("ab", 31)} {
		if _, err := artifact.ParseDigest(bad); err == nil {
			t.Errorf("%q was accepted as a digest", bad)
		}
	}
	for file, want := range map[string]artifact.Format{"a.tar.zst": artifact.TarZst, "a.tgz": artifact.TarGz,
		"a.tar.xz": artifact.TarXz, "a.zip": artifact.Zip, "a.tar": artifact.Tar, "a.rar": "", "a": ""} {
		if f, err := artifact.FormatOf(file); f != want || (err == nil) != (want != "") {
			t.Errorf("FormatOf(%s) = %q, %v", file, f, err)
		}
	}
}
