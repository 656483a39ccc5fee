package yaml

import (
	"maps"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// maxProblems is the maximum number of reported mistakes of a document.
const maxProblems = 20

// Load parses one document. File is its name in positions. The error is a diag.List with all mistakes; the Document is
// returned even then, for its positions, without a Value.
func Load(src []byte, file string) (*Document, error) { return LoadString(string(src), file) }

// LoadString is like Load for a string.
func LoadString(src, file string) (*Document, error) { return load(&Document{file: file, text: src}) }

// LoadPlain parses one document by the rules of YAML 1.1, without Salt's rules for SLS files, as Salt's serializers do:
// 0644 is octal, and the last of two equal keys of a mapping is used. Dates stay text there too.
func LoadPlain(src, file string) (*Document, error) {
	return load(&Document{file: file, text: src, plain: true})
}

func load(d *Document) (*Document, error) {
	src := d.text
	start := 0
	if strings.HasPrefix(src, "\ufeff") {
		start = len("\ufeff")
	}
	problems := checkCharacters(src)
	if len(problems) == 0 {
		problems = d.read(start)
	}
	if len(problems) > 0 {
		return d, d.report(problems)
	}
	return d, nil
}

// read parses the text. After a mistake that stops the parser, it continues with the next line that is not indented,
// only to find more mistakes.
func (d *Document) read(start int) []*problem {
	d.spans = make([]span, 0, len(d.text)/20+4)
	d.marks = make([]mark, 0, len(d.text)/10+4)
	p := newParser(d, start)
	v, err := p.document()
	problems := p.problems
	if err == nil {
		d.Value = v
		return problems
	}
	for err != nil && len(problems) < maxProblems {
		stop := err.(*problem) //nolint:errorlint // the parser returns no other
		problems = append(problems, stop)
		next := d.nextAtMargin(stop.resume)
		if next < 0 {
			break
		}
		p = newParser(d, next)
		_, err = p.document()
		for _, more := range p.problems {
			if !strings.HasPrefix(more.message, "found undefined alias") { // its anchor may have been skipped
				problems = append(problems, more)
			}
		}
	}
	return problems
}

func newParser(d *Document, start int) *parser {
	return &parser{
		scanner: newScanner(d.text, start), doc: d, handles: maps.Clone(defaultHandles),
		anchors: map[string]*anchored{}, words: map[string]any{},
	}
}

// nextAtMargin finds the next line after the offset that starts with something other than a space.
func (d *Document) nextAtMargin(at int) int {
	line, _ := d.lineCol(at)
	for ; line < len(d.lines); line++ {
		start := d.lines[line]
		if start > at && start < len(d.text) && strings.IndexByte(" \t\r\n#-.]}", d.text[start]) < 0 {
			return start
		}
	}
	return -1
}

// checkCharacters finds bytes that are not UTF-8 and characters that YAML does not allow.
func checkCharacters(src string) []*problem {
	var problems []*problem
	for i := 0; i < len(src) && len(problems) < maxProblems; {
		c := src[i]
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(src[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			problems = append(problems, &problem{at: i, message: "invalid UTF-8", hint: "save the file as UTF-8"})
		case r < 0xa0 && r != 0x85, r == 0xfffe, r == 0xffff:
			problems = append(problems, &problem{
				at: i, message: "control characters are not allowed: U+" +
					strings.ToUpper(strconv.FormatInt(0x10000+int64(r), 16)[1:]),
				hint: `write it as an escape inside double quotes, such as "\x07"`,
			})
		}
		i += size
	}
	return problems
}

// report converts problems to diagnostics.
func (d *Document) report(problems []*problem) error {
	var list diag.List
	for _, p := range problems {
		pos := d.pos(p.at)
		found := list.Add(pos, "%s", p.message).WithHint(diag.YAML, p.hint)
		found.Excerpt = diag.Excerpt(d.text, pos.Line, pos.Col)
		if found.Excerpt == "" && pos.Line > 1 { // the end is after the last line: show that
			found.Excerpt = diag.Excerpt(d.text, pos.Line-1, 0)
		}
	}
	return list.Err()
}
