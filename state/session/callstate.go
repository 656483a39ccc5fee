package session

import (
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// text returns the only argument of a function, given by position or by name.
func (c *caller) text(name, usage string) (string, error) {
	v, ok := c.kwargs.Get(name)
	if !ok && len(c.args) > 0 {
		v, ok = c.args[0], true
	}
	text, isText := v.(string)
	if !ok || !isText || text == "" {
		return "", misuse(usage, "the argument %s is missing, or is not text", name)
	}
	return text, nil
}

// templateStr runs the states of an SLS file whose text is an argument.
func (c *caller) templateStr() (Answer, error) {
	text, err := c.text("tem", "write state.template_str 'ID: {state.function: [name: ...]}'")
	if err != nil {
		return Answer{}, err
	}
	return c.given(render.Source{Name: "template_str", File: "template_str", Text: text}, "template_str")
}

// template runs an SLS file from any place on the host. The file may include files of the state tree.
func (c *caller) template() (Answer, error) {
	file, err := c.text("tem", "write state.template FILE")
	if err != nil {
		return Answer{}, err
	}
	if !path.IsAbs(file) {
		return Answer{}, misuse("start it with a slash", "%s is not an absolute path", file)
	}
	if !strings.HasSuffix(file, ".sls") {
		file += ".sls"
	}
	data, err := c.Host.Files.ReadFile(file)
	if err != nil {
		return Answer{}, misuse("name a file of this host", "the template %s cannot be read: %v", file, err)
	}
	if err := c.sources.checkTrusted("file", file); err != nil {
		return Answer{}, err
	}
	name := strings.TrimSuffix(path.Base(file), ".sls")
	return c.given(render.Source{Name: path.Base(file), File: file, Text: string(data)}, name)
}

// given runs an SLS file that is not in a tree.
func (c *caller) given(src render.Source, name string) (Answer, error) {
	if _, err := c.Pillar(c.ctx); err != nil {
		return Answer{}, err
	}
	src.Env = c.Named()[0].Env
	high, err := c.loader().Given(c.ctx, src, name)
	if err != nil {
		return Answer{}, c.shown(err)
	}
	return c.runHigh(high)
}

// high runs declarations that are given as data, as if they were one SLS file.
func (c *caller) high() (Answer, error) {
	data, err := c.mapping("data", "write state.high '{ID: {state.function: [name: ...]}}'")
	if err != nil {
		return Answer{}, err
	}
	text, err := value.Dumps(data, value.JSONOptions{})
	if err != nil {
		return Answer{}, err
	}
	return c.given(render.Source{Name: "high", File: "high", Text: "#!json\n" + text}, "high")
}

// low runs one step: {state: pkg, fun: installed, name: curl}. It returns the result of that step alone.
func (c *caller) low() (Answer, error) {
	data, err := c.mapping("data", "write state.low '{state: STATE, fun: FUNCTION, name: NAME}'")
	if err != nil {
		return Answer{}, err
	}
	kwargs := value.NewMap()
	for key, v := range data.All() {
		if key != "state" && key != "fun" && !strings.HasPrefix(value.Str(key), "__") {
			kwargs.Set(value.Str(key), v)
		}
	}
	kwargs.Set("fun", value.Str(data.Value("state"))+"."+value.Str(data.Value("fun")))
	if !data.Has("state") || !data.Has("fun") {
		return Answer{}, misuse("write state.low '{state: STATE, fun: FUNCTION, name: NAME}'",
			"the data has no state, or no fun")
	}
	answer, err := (&caller{Session: c.Session, ctx: c.ctx, kwargs: kwargs, observer: c.observer}).single()
	if all, ok := answer.Value.(*value.Map); ok && err == nil {
		for _, result := range all.All() {
			return Answer{Value: result, Failed: answer.Failed}, nil
		}
	}
	return answer, err
}

func (c *caller) mapping(name, usage string) (*value.Map, error) {
	v, ok := c.kwargs.Get(name)
	if !ok && len(c.args) > 0 {
		v = c.args[0]
	}
	m, ok := v.(*value.Map)
	if !ok {
		return nil, misuse(usage, "the argument %s is missing, or is not a mapping", name)
	}
	return m, nil
}
