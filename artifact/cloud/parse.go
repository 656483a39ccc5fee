package cloud

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// largestFile is the maximum size, in bytes, of a cloud.yaml.
const largestFile = 16 << 20

// Parse parses a cloud.yaml. Its error is a diag.List of all mistakes, with positions in the file of this name.
func Parse(file string, data []byte) (*Cloud, error) {
	p := &parser{file: file, places: map[string]diag.Pos{}}
	if len(data) > largestFile {
		p.problems.Add(diag.Pos{File: file}, "the file has %s", diag.Size(int64(len(data)))).
			WithHint(diag.Cloud, "a cloud.yaml has at most "+diag.Size(largestFile))
		return nil, p.problems.Err()
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, diag.Cloud.Of(diag.List{recipe.NotYAML(file, err)})
	}
	if len(root.Content) != 1 {
		p.problems.Add(diag.Pos{File: file, Line: 1, Col: 1}, "the file is empty").WithHint(diag.Cloud, "write `form: 1`")
		return nil, p.problems.Err()
	}
	read := p.mapping("", root.Content[0], keys())
	if err := p.problems.Err(); err != nil {
		return nil, err
	}
	c := New()
	c.Range4 = ""
	text, err := json.Marshal(read)
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	if err != nil {
		p.problems.Add(diag.Pos{File: file}, "reading the file: %v", err)
		return nil, p.problems.Err()
	}
	if err := c.check(p.at); err != nil {
		return nil, err
	}
	return c, nil
}

// parser reads nodes of YAML and collects problems.
type parser struct {
	file     string
	places   map[string]diag.Pos // positions of values, by path such as guests.web1.size
	problems diag.List
}

// at returns the position of a path, or the file if the path was not read.
func (p *parser) at(path string) diag.Pos {
	if pos, ok := p.places[path]; ok {
		return pos
	}
	return diag.Pos{File: p.file}
}

func (p *parser) add(n *yaml.Node, format string, args ...any) *diag.Diagnostic {
	return p.problems.Add(diag.Pos{File: p.file, Line: n.Line, Col: n.Column}, format, args...)
}

// pairs calls use for each key of a mapping, and reports keys that are not texts or are given twice.
func (p *parser) pairs(path string, n *yaml.Node, use func(name string, key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.add(n, "%s: a mapping was expected", cmp.Or(path, "the file")).WithHint(diag.Cloud, "write `key: value`")
		return
	}
	given := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Anchor != "":
			p.add(key, "a name was expected as key").WithHint(diag.Cloud, "write `key: value`")
		case given[key.Value]:
			p.add(key, "%s is given twice", clipped(key.Value)).WithHint(diag.Cloud, "keep one of them")
		default:
			given[key.Value] = true
			use(key.Value, key, value)
		}
	}
}

func (p *parser) mapping(path string, n *yaml.Node, keys []key) map[string]any {
	read := map[string]any{}
	p.places[path] = diag.Pos{File: p.file, Line: n.Line, Col: n.Column}
	p.pairs(path, n, func(name string, at, value *yaml.Node) {
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
		if i < 0 {
			p.unknown(at, keys)
			return
		}
		read[name] = p.value(join(path, name), value, keys[i])
	})
	for _, k := range keys {
		if _, given := read[k.name]; k.required && !given && n.Kind == yaml.MappingNode {
			p.add(n, "%s is missing", join(path, k.name)).WithHint(diag.Cloud, k.name+" is "+k.doc)
		}
	}
	return read
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (p *parser) unknown(at *yaml.Node, keys []key) {
	var known []string
	for _, k := range keys {
		known = append(known, k.name)
	}
	hint := diag.DidYouMean(at.Value, known)
	if hint == "" {
		hint = "known keys are " + joined(known)
	}
	p.add(at, "there is no key %q here", clipped(at.Value)).WithHint(diag.Cloud, hint)
}

func (p *parser) value(path string, n *yaml.Node, k key) any {
	p.places[path] = diag.Pos{File: p.file, Line: n.Line, Col: n.Column}
	switch k.kind {
	case section:
		all := map[string]any{}
		p.pairs(path, n, func(name string, at, value *yaml.Node) {
			if err := k.named(name); err != nil {
				p.add(at, "%s: %v", path, err).WithHint(diag.Cloud, diag.HintOf(err))
				return
			}
			all[name] = p.mapping(join(path, name), value, k.of)
		})
		return all
	case texts:
		return p.list(path, n, k)
	case number:
		return p.number(path, n)
	case text:
	}
	return p.text(path, n, k)
}

func (p *parser) list(path string, n *yaml.Node, k key) []string {
	all := []string{}
	if n.Kind != yaml.SequenceNode {
		p.add(n, "%s: a list was expected", path).WithHint(diag.Cloud, "write each item on a line of its own after a dash")
		return all
	}
	for i, item := range n.Content {
		one := p.text(path+"."+strconv.Itoa(i), item, k)
		if slices.Contains(all, one) {
			p.add(item, "%s: %q is given twice", path, clipped(one)).WithHint(diag.Cloud, "keep one of them")
		}
		all = append(all, one)
	}
	return all
}

// largestNumber is larger than every valid number in the file.
const largestNumber = 1 << 20

func (p *parser) number(path string, n *yaml.Node) int {
	i, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.Anchor != "" || err != nil || i < 0 || i > largestNumber ||
		strconv.Itoa(i) != n.Value {
		p.add(n, "%s: a whole number was expected", path).WithHint(diag.Cloud, "write digits without quotes, such as 20")
		return 0
	}
	return i
}

func (p *parser) text(path string, n *yaml.Node, k key) string {
	p.places[path] = diag.Pos{File: p.file, Line: n.Line, Col: n.Column}
	if n.Kind != yaml.ScalarNode || n.Anchor != "" || n.Tag == "!!null" || n.Value == "" {
		p.add(n, "%s: a text was expected", path).WithHint(diag.Cloud, k.name+" is "+k.doc)
		return ""
	}
	if k.check == nil {
		return n.Value
	}
	if err := k.check(n.Value); err != nil {
		p.add(n, "%s: %v", path, err).WithHint(diag.Cloud, diag.HintOf(err))
	}
	return n.Value
}
