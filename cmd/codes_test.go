package cmd_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

var updateMessages = flag.Bool("update-messages", false, "write docs/messages.md from the hints in the code")

// advice is a place in the code that makes a hint.
type advice struct {
	topic         string // the name of the constant in state/diag; "" if the place has none
	message, hint string // their literal parts, with … for what only the running program knows
	place         string
}

// uncoded has the packages and types whose texts called Hint get their code elsewhere, or are no hints of errors.
var uncoded = map[string]string{
	"state/jinja/":         "place adds the code of templates",
	"agent/fleet/":         "Code adds the code of each kind of attention",
	"cmd/corpus/fleet":     "as those of agent/fleet",
	"cmd/corpus/rolloutex": "as those of agent/fleet",
}

// TestEveryHintHasACode checks that the code gives each hint a topic: a hint with a literal text is an argument of a
// function that takes a topic, and each method Hint uses one.
func TestEveryHintHasACode(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, a := range advices(t) {
		if used[a.topic] = true; a.topic == "" {
			t.Errorf("%s makes a hint without a topic: %s\nsee \"Adding a message\" in CONTRIBUTING.md", a.place, a.hint)
		}
	}
	names := topicNames(t)
	for name, topic := range names {
		if !used[name] {
			t.Errorf("no hint has the topic %s (%s)", name, topic)
		}
	}
	if len(names) != len(diag.Topics()) {
		t.Errorf("there are %d constants and %d titles of topics", len(names), len(diag.Topics()))
	}
}

// TestEveryCodeIsExplained compares docs/troubleshooting.md with the topics: each has a section with its title, what to
// do first, and more than that.
func TestEveryCodeIsExplained(t *testing.T) {
	t.Parallel()
	sections := map[string]string{}
	for _, section := range regexp.MustCompile(`(?m)^### `).Split(page(t, "docs/troubleshooting.md"), -1)[1:] {
		code, text, _ := strings.Cut(section, "\n")
		text, _, _ = strings.Cut(text, "\n## ")
		sections[code] = text
	}
	explained := 0
	for _, topic := range diag.Topics() {
		text, there := sections[topic.String()]
		if !there {
			t.Errorf("docs/troubleshooting.md has no section ### %s (%s)", topic, topic.Title())
			continue
		}
		explained++
		flat := strings.Join(strings.Fields(text), " ")
		title, cure := "**"+topic.Title()+".**", strings.ReplaceAll(topic.Cure(), "`", "")
		if !strings.HasPrefix(flat, title) {
			t.Errorf("the section %s of docs/troubleshooting.md does not begin with %s", topic, title)
		}
		if len(flat) < len(title)+len(cure) {
			t.Errorf("the section %s of docs/troubleshooting.md says less than `corpus help %[1]s`", topic)
		}
		if link := "messages.md#" + strings.ToLower(topic.String()); !strings.Contains(text, link) {
			t.Errorf("the section %s of docs/troubleshooting.md has no link to %s", topic, link)
		}
	}
	for code := range sections {
		if _, known := diag.TopicOf(code); !known && regexp.MustCompile(`^C\d+$`).MatchString(code) {
			t.Errorf("docs/troubleshooting.md has a section %s, which is no code", code)
		}
	}
	if explained == 0 {
		t.Fatal("no section was found")
	}
}

// TestMessagesAreListed compares docs/messages.md with the messages and hints in the code. `make generated` writes it.
func TestMessagesAreListed(t *testing.T) {
	t.Parallel()
	byTopic := map[string][]string{}
	for _, a := range advices(t) {
		if strings.Trim(a.message, "…:; ") == "" && strings.Trim(a.hint, "…:; ") == "" {
			continue
		}
		if entry := a.entry(); !slices.Contains(byTopic[a.topic], entry) {
			byTopic[a.topic] = append(byTopic[a.topic], entry)
		}
	}
	names := map[diag.Topic]string{}
	for name, topic := range topicNames(t) {
		names[topic] = name
	}
	var b strings.Builder
	b.WriteString("# Messages\n\nThe messages that have a hint, by the code at the end of the hint. … stands for what " +
		"only the running program\nknows. [troubleshooting.md](troubleshooting.md#codes) says what to do about each code. " +
		"`make generated` writes this page.\n")
	for _, topic := range diag.Topics() {
		entries := byTopic[names[topic]]
		slices.Sort(entries)
		fmt.Fprintf(&b, "\n## %s\n\n%s: see [troubleshooting.md](troubleshooting.md#%s).\n\n```text\n%s```\n", topic,
			topic.Title(), strings.ToLower(topic.String()), strings.Join(entries, ""))
	}
	if *updateMessages {
		if err := os.WriteFile("../docs/messages.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if page(t, "docs/messages.md") != b.String() {
		t.Error("docs/messages.md is not what the code says: run make generated")
	}
}

func (a advice) entry() string {
	clean := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if message := clean(a.message); strings.Trim(message, "…:; ") == "" {
		return "…\n  hint: " + clean(a.hint) + "\n"
	}
	if hint := clean(a.hint); strings.Trim(hint, "… ") != "" {
		return clean(a.message) + "\n  hint: " + hint + "\n"
	}
	return clean(a.message) + "\n"
}

// topicNames returns the topics by the names of their constants.
func topicNames(t *testing.T) map[string]diag.Topic {
	t.Helper()
	names := map[string]diag.Topic{}
	_, file, _ := parsedFile(t, "state/diag/topics.go")
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if number, ok := spec.Values[0].(*ast.BasicLit); ok && number.Kind == token.INT {
				n, err := strconv.Atoi(number.Value)
				if err != nil {
					t.Fatal(err)
				}
				names[spec.Names[0].Name] = diag.Topic(n)
			}
		}
		return true
	})
	return names
}

// advices returns the places in the code that make hints.
func advices(t *testing.T) (all []advice) {
	t.Helper()
	for _, name := range goFiles(t) {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "state/diag/") {
			continue
		}
		set, file, source := parsedFile(t, name)
		if !strings.Contains(string(source), "Hint") && !strings.Contains(string(source), "Coded(") &&
			!strings.Contains(string(source), "NewMistake(") && !strings.Contains(string(source), "host.Failed(") {
			continue
		}
		f := &hintFile{name: name, set: set, coded: map[ast.Node]bool{}}
		for _, d := range file.Decls {
			f.assigned = assignments(d)
			ast.Inspect(d, f.calls)
		}
		for place := range uncoded {
			f.exempt = f.exempt || strings.HasPrefix(name, place)
		}
		if !f.exempt {
			ast.Inspect(file, f.loose)
		}
		all = append(all, f.found...)
	}
	if len(all) < 1000 {
		t.Fatalf("only %d hints were found", len(all))
	}
	return all
}

type hintFile struct {
	name   string
	set    *token.FileSet
	exempt bool
	coded  map[ast.Node]bool // strings with a topic
	found  []advice

	assigned map[string][]string // the texts that variables get in the present function
}

// assignments returns the texts that a declaration assigns to variables.
func assignments(d ast.Decl) map[string][]string {
	all := map[string][]string{}
	ast.Inspect(d, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
			for i, to := range a.Lhs {
				if id, ok := to.(*ast.Ident); ok && strings.Contains(literal(a.Rhs[i]), " ") {
					all[id.Name] = append(all[id.Name], literal(a.Rhs[i]))
				}
			}
		}
		return true
	})
	return all
}

func (f *hintFile) add(n ast.Node, topic, message, hint string) {
	f.found = append(f.found, advice{topic: topic, message: message, hint: hint,
		place: f.name + ":" + strconv.Itoa(f.set.Position(n.Pos()).Line)})
}

// calls records calls that take a topic.
func (f *hintFile) calls(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return true
	}
	on, name := "", ""
	var receiver ast.Expr
	switch fun := call.Fun.(type) {
	case *ast.SelectorExpr:
		name, receiver = fun.Sel.Name, fun.X
		on = topicOf(fun.X)
	case *ast.Ident:
		name = fun.Name
	}
	arg := func(i int) string {
		if i < len(call.Args) {
			return literal(call.Args[i])
		}
		return ""
	}
	switch {
	case name == "Hint" && len(call.Args) > 1:
		f.add(n, on, messageOf(call.Args[0]), arg(1))
	case name == "Coded":
		f.add(n, on, "", arg(0))
	case name == "WithHint":
		f.add(n, topicOf(call.Args[0]), messageOf(receiver), arg(1))
	case name == "NewMistake":
		f.add(n, topicOf(call.Args[0]), arg(2), arg(1))
	case name == "Failed" && len(call.Args) == 4:
		f.add(n, topicOf(call.Args[0]), arg(2)+": …", arg(3))
	case (name == "Warn" || name == "Fail") && len(call.Args) > 3 && topicOf(call.Args[1]) != "": // of doctor
		f.add(n, topicOf(call.Args[1]), arg(3), arg(2))
	case name == "Error" && len(call.Args) == 4 && topicOf(call.Args[1]) != "":
		f.add(n, topicOf(call.Args[1]), "…", arg(3))
	default:
		return true
	}
	last := f.found[len(f.found)-1]
	if last.topic == "" && dynamic(call) { // the topic is chosen by code, among those that the code names
		f.found = f.found[:len(f.found)-1]
	}
	for _, a := range call.Args {
		ast.Inspect(a, func(n ast.Node) bool { f.coded[n] = true; return true })
		if id, ok := a.(*ast.Ident); ok && last.topic != "" && strings.Trim(last.hint, "… ") == "" {
			for _, hint := range f.assigned[id.Name] {
				f.add(n, last.topic, last.message, hint)
			}
		}
	}
	return true
}

// dynamic reports whether a variable or a function gives the topic of a call.
func dynamic(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, isID := selector.X.(*ast.Ident)
	_, isCall := selector.X.(*ast.CallExpr)
	if selector.Sel.Name == "Hint" || selector.Sel.Name == "Coded" {
		return isCall || isID && (id.Name == "topic" || id.Name == "t")
	}
	first, isID := call.Args[0].(*ast.Ident)
	return isID && (first.Name == "topic" || first.Name == "t")
}

// loose records hints in methods and fields that have no topic.
func (f *hintFile) loose(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Recv != nil && n.Name.Name == "Hint" && n.Type.Params.NumFields() == 0 && n.Body != nil {
			f.literals(n.Body)
			ast.Inspect(n.Body, func(b ast.Node) bool {
				if r, ok := b.(*ast.ReturnStmt); ok && len(r.Results) == 1 {
					if call, ok := r.Results[0].(*ast.CallExpr); ok && !keeps(call) {
						f.add(r, "", "", "a call that takes no topic")
					}
				}
				return true
			})
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Hint" {
			f.literals(n.Value)
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if field, ok := to.(*ast.SelectorExpr); ok && field.Sel.Name == "Hint" && len(n.Lhs) == len(n.Rhs) {
				f.literals(n.Rhs[i])
			}
		}
	}
	return true
}

// keeps reports whether a call returns a hint with a code.
func keeps(call *ast.CallExpr) bool {
	name := ""
	switch fun := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = fun.Sel.Name
	case *ast.Ident:
		name = fun.Name
	}
	return slices.Contains([]string{"Coded", "HintOf", "Or", "Hint"}, name)
}

// literals records the texts in a part of a file, strings with a space, that are in no call with a topic.
func (f *hintFile) literals(in ast.Node) {
	ast.Inspect(in, func(n ast.Node) bool {
		text, ok := n.(*ast.BasicLit)
		if ok && text.Kind == token.STRING && !f.coded[n] && strings.Contains(text.Value, " ") {
			f.add(n, "", "", text.Value)
		}
		return true
	})
}

// topicOf returns the name of the topic that an expression such as diag.Disk is, or "".
func topicOf(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "diag" {
			return s.Sel.Name
		}
	}
	return ""
}

// messageOf returns the literal parts of the error or diagnostic that an expression makes.
func messageOf(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return "…"
	}
	for _, a := range call.Args {
		if text := literal(a); strings.Trim(text, "… ") != "" {
			return text
		}
	}
	return "…"
}

var verbs = regexp.MustCompile(`%[-+#0]*(\[\d+\])?[\d.]*[a-zA-Z]`)

// literal returns the literal parts of a string expression. A call of Sprintf counts as its format.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return strings.ReplaceAll(verbs.ReplaceAllString(strings.ReplaceAll(text, "%%", "\x00"), "…"), "\x00", "%")
		}
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	case *ast.CallExpr:
		if s, ok := e.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Sprintf" && len(e.Args) > 0 {
			return literal(e.Args[0])
		}
	}
	return "…"
}
