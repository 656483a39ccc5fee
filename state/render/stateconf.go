package render

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Configurations holds the parameters that stateconf.set declares in the SLS files of a session. The zero value is
// ready to use.
type Configurations struct {
	mu            sync.Mutex
	set, extended value.Map // parameters by ID; extended has those below extend
}

// A stateconf is the renderer of that name for one file: a template and a converter to data, and changes of that data.
// IDs that begin with a dot get the name of the file, stateconf.set declares parameters for the template, and the ID
// .goal requires all others.
type stateconf struct {
	sls, env       string
	template, data part
	goal, start    bool // add the state that requires all others, and the one that the first requires
	ordered        bool // each state requires the one before it
	piped          bool // the data comes from the previous renderer
}

const (
	stateconfUsage = "write #!stateconf [-G] [-o] [-s] [-p] [yaml . jinja]"
	stateconfSet   = "stateconf.set"
	keyExtend      = "extend"
)

// stateconf runs the renderer.
func (r *Renderer) stateconf(ctx context.Context, s *state, arguments string) error {
	c, err := parseStateconf(arguments)
	if err != nil {
		return diag.At(diag.Pos{File: s.src.File, Line: 1, Col: 1}, "renderer stateconf: %v", err).
			WithHint(diag.SLS, stateconfUsage)
	}
	c.sls, c.env = value.Str(s.vars.Value("sls")), s.src.Env
	if c.env == "" {
		c.env = "base"
	}
	if !c.piped {
		if at := endOfConfig(s.text); at >= 0 {
			head := *s
			head.text, head.doc = s.text[:at], &Document{file: s.doc.file}
			if err := r.stateconfPass(ctx, &head, c, true); err != nil {
				return err
			}
		}
	}
	return r.stateconfPass(ctx, s, c, false)
}

// endOfConfig returns the position of the line that ends the parameters of a file, or -1.
func endOfConfig(text string) int {
	at := regexp.MustCompile(`#\s*-+\s*end of state config\s*-+`).FindStringIndex(text)
	if at == nil {
		return -1
	}
	return at[0]
}

func parseStateconf(arguments string) (*stateconf, error) {
	c := &stateconf{goal: true, template: part{name: "jinja"}, data: part{name: "yaml"}}
	words := strings.Fields(arguments)
	for len(words) > 0 && strings.HasPrefix(words[0], "-") && words[0] != "-" {
		for _, option := range words[0][1:] {
			if !c.set(option) {
				return nil, diag.At(diag.Pos{}, "there is no option -%c", option)
			}
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return c, nil
	}
	dot := slices.Index(words, ".")
	if dot < 1 || dot == len(words)-1 {
		return nil, diag.At(diag.Pos{}, "%q does not name two renderers", strings.Join(words, " "))
	}
	c.data = part{words[0], strings.Join(words[1:dot], " ")}
	c.template = part{words[dot+1], strings.Join(words[dot+2:], " ")}
	return c, nil
}

// set sets an option of one letter, and reports whether it exists.
func (c *stateconf) set(option rune) bool {
	switch option {
	case 'G':
		c.goal = false
	case 'o':
		c.ordered = true
	case 's':
		c.start = true
	case 'p':
		c.piped = true
	default:
		return false
	}
	return true
}

// stateconfPass renders a text once and changes the data. If extract is set, only its parameters are of use.
func (r *Renderer) stateconfPass(ctx context.Context, s *state, c *stateconf, extract bool) error {
	if !c.piped {
		given := s.vars
		s.vars = c.vars(given, r.Configurations)
		err := r.stages(ctx, s, c.template, c.data)
		s.vars = given
		if err != nil {
			return err
		}
	}
	data, err := s.doc.Mapping()
	if err != nil {
		return err
	}
	s.doc.Value, s.data = data, true
	w := &rewriter{stateconf: c, doc: s.doc, data: data}
	w.run(extract)
	if err := w.problems.Err(); err != nil {
		return err
	}
	r.Configurations.extract(data)
	return nil
}

func (r *Renderer) stages(ctx context.Context, s *state, parts ...part) error {
	for _, p := range parts {
		if err := r.known(p.name); err != nil {
			err.Pos = diag.Pos{File: s.src.File, Line: 1, Col: 1}
			return err
		}
		if err := r.stage(ctx, s, p); err != nil {
			return err
		}
	}
	return nil
}

// vars returns the variables of the template: those of every file, and the parameters that were declared. Those of
// this file have their own names, and those of others the name of their file before it.
func (c *stateconf) vars(given *value.Map, conf *Configurations) *value.Map {
	vars := given.Clone()
	dir := "."
	if i := strings.LastIndexByte(c.sls, '.'); i >= 0 {
		dir = strings.ReplaceAll(c.sls[:i], ".", "/")
	} else if c.sls != "" {
		dir = c.sls
	}
	vars.Set("sls_dir", dir)
	conf.mu.Lock()
	defer conf.mu.Unlock()
	for id, parameters := range conf.set.All() {
		vars.Set(strings.TrimPrefix(value.Str(id), c.sls+"::"), parameters.(*value.Map).Clone())
	}
	return vars
}

// extract keeps the parameters that a file declares.
func (conf *Configurations) extract(data *value.Map) {
	conf.mu.Lock()
	defer conf.mu.Unlock()
	if extensions, ok := data.Value(keyExtend).(*value.Map); ok {
		gather(&conf.extended, extensions)
	}
	for _, id := range gather(&conf.set, data) {
		own, more := conf.set.Value(id).(*value.Map), conf.extended.Value(id)
		if more, ok := more.(*value.Map); ok {
			own.Update(more)
		}
	}
}

// gather adds the parameters of all stateconf.set in a file, and returns their IDs.
func gather(to, data *value.Map) (ids []string) {
	for id, body := range data.All() {
		list := parametersOf(body)
		if list == nil {
			continue
		}
		name := value.Str(id)
		parameters, ok := to.Value(name).(*value.Map)
		if !ok {
			parameters = value.NewMap()
			to.Set(name, parameters)
		}
		ids = append(ids, name)
		for _, item := range list.Items {
			if m, _ := item.(*value.Map); m.Len() > 0 {
				parameters.Set(m.Names()[0], m.Value(m.Names()[0]))
			}
		}
	}
	return ids
}

// parametersOf returns the arguments of the stateconf.set of a declaration, or nil if it has none.
func parametersOf(declaration any) *value.List {
	states, _ := declaration.(*value.Map)
	for _, name := range []string{"stateconf", stateconfSet} {
		if list, ok := states.Value(name).(*value.List); ok {
			return list
		}
	}
	return nil
}
