package pages_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPagesEscapeHostText: a report with markup, control sequences and a line of 10 MB is text, and short.
func TestPagesEscapeHostText(t *testing.T) {
	dir, v := site(t, 30)
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".html") {
			return err
		}
		seen++
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text, name := string(data), strings.TrimPrefix(path, dir)
		if strings.Contains(text, "<script>document") || strings.Contains(text, "<img") ||
			strings.ContainsAny(text, "\x1b\a") {
			t.Errorf("%s has what a host wrote as it wrote it", name)
		}
		if len(data) > 200<<10 {
			t.Errorf("%s has %d bytes", name, len(data))
		}
		for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], ":") || strings.HasPrefix(m[1], "/") {
				t.Errorf("%s leads elsewhere: %s", name, m[1])
				continue
			}
			to, _, _ := strings.Cut(m[1], "#")
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), to)); err != nil {
				t.Errorf("%s leads to a page that is not there: %s", name, m[1])
			}
		}
		if !strings.Contains(text, `http-equiv="Content-Security-Policy" content="default-src 'none'`) {
			t.Errorf("%s has no policy", name)
		}
		return nil
	})
	if err != nil || seen != 30+1+2+1+1 || len(v.Hosts) != 30 {
		t.Errorf("%d pages, %v", seen, err)
	}
	run, err := os.ReadFile(filepath.Join(dir, "host", "shop-production-useast1-00000", runID+".html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"&lt;script&gt;document.title", `\x1b[31mred`, "(10.0 MiB in all)", "First failure",
		"workers = 8", "signed by the host"} {
		if !strings.Contains(strings.ReplaceAll(string(run), "MB", "MiB"), want) {
			t.Errorf("the page of the run lacks %q", want)
		}
	}
}
