package cmd_test

import (
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

var updatePicture = flag.Bool("update-picture", false, "write docs/picture.svg from a run of the demo")

const pictureFile = "../docs/picture.svg"

// passing has patterns of the parts of the demo's output that differ from run to run.
var passing = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`sha256:[0-9a-f]{60,64}`), "sha256:68cb9278…"},
	{regexp.MustCompile(`\b\d+(\.\d+)? m?s\b`), "0.4 s"},
	{regexp.MustCompile(`\b\d{8}T\d{6}\.\d{6}`), "20260102T030405.000001"},
	{regexp.MustCompile(`\b\d+ B\b`), "500 B"},
}

// pictureLines returns the lines of the demo in the picture: a version is deployed, a broken one is rolled back, and
// the next run does not try it again.
func pictureLines(t *testing.T, out string) (lines []string) {
	t.Helper()
	_, acts, found := strings.Cut(out, "$ corpus publish myapp 1.1")
	acts, _, ended := strings.Cut(acts, "$ corpus-agent status")
	if !found || !ended {
		t.Fatalf("the demo has no such acts:\n%s", out)
	}
	shows, skipped := true, regexp.MustCompile(`^(\d\. |=> |   Look|$|error: |hint: |published )`)
	for line := range strings.Lines("$ corpus publish myapp 1.1" + acts) {
		line = strings.TrimRight(line, "\n")
		if command, typed := strings.CutPrefix(line, "$ "); typed {
			shows = !strings.HasPrefix(command, "corpus build") && !strings.Contains(command, "--test")
		}
		if !shows || skipped.MatchString(line) {
			continue
		}
		for _, p := range passing {
			line = p.pattern.ReplaceAllString(line, p.instead)
		}
		lines = append(lines, line)
	}
	return lines
}

// drawn returns a picture of a terminal with these lines. It has the colours of the reader's light or dark theme.
func drawn(lines []string) string {
	const columns, height, margin = 112, 19, 16
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="ui-monospace, monospace" font-size="13">
<title>A deploy, and a release that is rolled back by itself</title>
<style>
.paper { fill: #f6f8fa } text { fill: #24292f; white-space: pre } .typed { font-weight: bold } .bad { fill: #b3261e } .good { fill: #116329 }
@media (prefers-color-scheme: dark) {
.paper { fill: #161b22 } text { fill: #e6edf3 } .bad { fill: #ff8a80 } .good { fill: #7ee787 } }
</style>
<rect class="paper" width="100%%" height="100%%" rx="8"/>
`, columns*8+2*margin, len(lines)*height+2*margin)
	for i, line := range lines {
		if runes := []rune(line); len(runes) > columns {
			line = string(runes[:columns-1]) + "…"
		}
		class := ""
		switch {
		case strings.HasPrefix(line, "$ "):
			class = ` class="typed"`
		case strings.HasPrefix(line, "FAILED"), strings.HasPrefix(line, "rolled back"):
			class = ` class="bad"`
		case strings.HasPrefix(line, "converged"):
			class = ` class="good"`
		}
		fmt.Fprintf(&b, "<text%s x=\"%d\" y=\"%d\">%s</text>\n", class, margin, margin+13+i*height, html.EscapeString(line))
	}
	return b.String() + "</svg>\n"
}

// TestPictureShowsARealRun runs the demo and compares its output with docs/picture.svg, except durations and digests.
func TestPictureShowsARealRun(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	want := drawn(pictureLines(t, demo(t, bin(t), filepath.Join(t.TempDir(), "demo"))))
	if *updatePicture {
		if err := os.WriteFile(pictureFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := page(t, "docs/picture.svg"); got != want {
		t.Errorf("docs/picture.svg differs from the demo; run make picture. It has\n%s\nbut the demo prints\n%s",
			got, want)
	}
}
