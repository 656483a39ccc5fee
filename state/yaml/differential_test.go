package yaml_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

const python = "/usr/bin/python3"

// needPyYAML skips the test if Debian's python3-yaml is not installed.
func needPyYAML(t *testing.T) {
	t.Helper()
	if err := exec.Command(python, "-c", "import yaml; yaml.CSafeLoader").Run(); err != nil {
		t.Skip("needs /usr/bin/python3 with PyYAML and libyaml: apt-get install python3-yaml")
	}
}

type answer struct {
	OK  []any  `json:"ok"`
	Err *int   `json:"err"`
	Why string `json:"why"`
}

func runPyYAML(t *testing.T, script string, docs, answers any) {
	t.Helper()
	in, err := json.Marshal(docs)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "../../testdata/yaml/"+script)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, answers); err != nil {
		t.Fatal(err)
	}
}

// refusedHere reports whether a document is refused on onlyHere although libyaml accepts it: a list or mapping inside
// of itself.
func refusedHere(err error) bool { return strings.Contains(err.Error(), "recursive node") }

func TestLoadMatchesPyYAML(t *testing.T) {
	needPyYAML(t)
	seed, count := uint64(1), 3000
	if s := os.Getenv("YAML_DIFFERENTIAL"); s != "" { // seed,count for a longer run by hand
		if err := json.Unmarshal([]byte("["+s+"]"), &[]any{&seed, &count}); err != nil {
			t.Fatal(err)
		}
	}
	docs := generateDocuments(rand.New(rand.NewPCG(seed, 0)), count)
	var answers []answer
	runPyYAML(t, "oracle.py", docs, &answers)
	loaded, refused, onlyHere := 0, 0, 0
	for i, doc := range docs {
		d, err := yaml.LoadString(doc, "t.sls")
		want := answers[i]
		switch {
		case err != nil && refusedHere(err):
			onlyHere++
		case err == nil && want.Err != nil:
			t.Errorf("%q: loaded as %v; PyYAML says line %d: %s", doc, typed(d.Value), *want.Err, want.Why)
		case err != nil && want.Err == nil:
			t.Errorf("%q: %v; PyYAML loads %v", doc, err, want.OK)
		case err == nil && !sameTyped(typed(d.Value), want.OK):
			t.Errorf("%q:\n got %v\nwant %v", doc, typed(d.Value), want.OK)
		case err != nil:
			refused++
			if line := err.(diag.List)[0].Pos.Line; line == 0 {
				t.Errorf("%q: no line in %v", doc, err)
			}
		default:
			loaded++
		}
	}
	t.Logf("seed %d: %d documents loaded alike, %d refused alike, %d refused only here, as documented", seed, loaded,
		refused, onlyHere)
}

// pieces has the parts of random documents.
var pieces = strings.Split(
	`a|b|key|x y|1|0|-1|0644|08|1_000|1.5|1e3|1.0e+3|.5|-.inf|.nan|22:22|1:30:45|190:20:30.15|yes|No|on|~|null|`+
		`: |:|- |-|? |?|, |,|[|]|{|}|'|"|#| #|&a |*a|&b|*b |!|!!str |!!int |!!set |!!omap |!!binary |!foo |!<x> |<<: |<<|=|`+
		`a: b|- a|k: v|'q'|"d"|"\n"|"\x41"|"\u00e9"|"\q"|\|>|\|-|\|+|>2|%|@|`+"`"+
		`|...|---|--- |2001-12-14|é|0x1F|0b11|0o7|''|""|`+
		`{a: 1, b: 2}|[1, 2]|{a: [x, y]}|a b c|it's|a"b|key: |k2: |- - a|- k: v|a:b|`+"x\ty|\t|k:\tv|-\tw"+
		`|http://x/y|10.0.0.1|@x|$x|x%|a#b|a #b`, "|")

// generateDocuments generates documents of pieces, line breaks and indentation. Many are invalid.
func generateDocuments(r *rand.Rand, count int) []string {
	docs := make([]string, count)
	for i := range docs {
		var b strings.Builder
		switch i % 3 {
		case 0:
			for range 1 + r.IntN(8) {
				b.WriteString(randomPiece(r))
			}
		case 1:
			randomLines(r, &b)
		default:
			randomTree(r, &b, 0, 3)
		}
		docs[i] = b.String()
	}
	return docs
}

func randomPiece(r *rand.Rand) string {
	switch r.IntN(8) {
	case 0:
		return " "
	case 1:
		return "\n" + strings.Repeat(" ", r.IntN(4))
	case 2:
		return []string{"\t", "\r\n", "\n\n", "  ", "\u0085", "\u2028", "\ufeff", "\r"}[r.IntN(8)]
	}
	p := pieces[r.IntN(len(pieces))]
	if p == `\` {
		return "|"
	}
	return p
}

// randomLines writes lines like those of a mapping, with random errors in between.
func randomLines(r *rand.Rand, b *strings.Builder) {
	for range 1 + r.IntN(6) {
		b.WriteString(strings.Repeat(" ", 2*r.IntN(3)))
		switch r.IntN(6) {
		case 0:
			b.WriteString("- ")
		case 1:
			b.WriteString("k" + string(rune('0'+r.IntN(4))) + ":\n")
			continue
		case 2:
			b.WriteString("t: " + []string{"|", ">", "|-", ">+", "|2", ">-1"}[r.IntN(6)] + "\n")
			continue
		default:
			b.WriteString("k" + string(rune('0'+r.IntN(6))) + ": ")
		}
		for range r.IntN(3) {
			b.WriteString(randomPiece(r))
		}
		b.WriteString("\n")
	}
}

// randomTree writes a document that is usually valid.
func randomTree(r *rand.Rand, b *strings.Builder, indent, depth int) {
	pad := strings.Repeat(" ", indent)
	sequence := r.IntN(3) == 0
	for i := range 1 + r.IntN(4) {
		b.WriteString(pad)
		key := []string{"a", "b", "'c'", `"d"`, "e f", "1", "true", "<<"}[(i+r.IntN(5))%8]
		if sequence {
			b.WriteString("-")
		} else {
			b.WriteString(key + ":")
		}
		if depth > 0 && r.IntN(3) == 0 && (sequence || key != "<<") { // omitted keys are still checked
			b.WriteString("\n")
			randomTree(r, b, indent+1+r.IntN(3), depth-1)
			continue
		}
		b.WriteString(" " + randomScalar(r, indent) + "\n")
	}
}

func randomScalar(r *rand.Rand, indent int) string {
	pad := strings.Repeat(" ", indent+2)
	switch r.IntN(8) {
	case 0:
		return "|\n" + pad + "line\n" + pad + " more\n\n" + pad + "end"
	case 1:
		return ">-\n" + pad + "line\n" + pad + "more\n\n" + pad + " end"
	case 2:
		return "'a\n\n" + pad + "b  \n" + pad + "c'"
	case 3:
		return "\"a \\\n" + pad + "b\\n\n" + pad + "\\ c\""
	case 4:
		return "plain\n" + pad + "words\n\n" + pad + "continue # not"
	}
	return pieces[r.IntN(len(pieces))]
}
