package procedure

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// largestSetting is the length in bytes of the longest value that is read from a file or the standard input.
const largestSetting = 1 << 20

// Input is the source of settings whose values are not on the command line, which every user of a host can read. The
// zero Input has no source.
type Input struct {
	Stdin io.Reader                                // the source of KEY=-, for one value
	Open  func(file string) (io.ReadCloser, error) // the source of KEY=@FILE
}

// InputOf returns an Input that reads files of this machine and a standard input.
func InputOf(stdin io.Reader) Input {
	return Input{Stdin: stdin, Open: func(file string) (io.ReadCloser, error) { return walk.OpenGiven(file) }}
}

// ParseSettings parses KEY=VALUE pairs of set-configuration and --set. A key is one of the configuration's own, such as
// user, or one of data; a:b sets b in a. A value is YAML; - stands for the text of the standard input, and @FILE for
// that of a file, without a line feed at the end. Errors do not show values, which may be secrets.
func ParseSettings(pairs []string, in Input) (*value.Map, error) {
	settings := value.NewMap()
	for i, pair := range pairs {
		key, text, ok := strings.Cut(pair, "=")
		path := strings.Split(key, ":")
		if !ok || key == "" || strings.Contains(":"+key+":", "::") {
			return nil, diag.Usage.Hint(fmt.Errorf("setting %d of %d sets nothing", i+1, len(pairs)),
				"write key=value, or data:section:key=value")
		}
		v, err := in.value(key, text)
		if err != nil {
			return nil, err
		}
		if !contains(plain(), path[0]) {
			path = append([]string{keyData}, path...)
		}
		for i := len(path) - 1; i > 0; i-- {
			v = value.NewMap(path[i], v)
		}
		if err := over(&settings, value.NewMap(path[0], v)); err != nil {
			return nil, err
		}
	}
	return settings, checkAccounts(settings)
}

// value returns the value of a pair.
func (in *Input) value(key, text string) (any, error) {
	if file, named := strings.CutPrefix(text, "@"); named || text == "-" {
		read, err := in.read(file, text == "-")
		if err != nil {
			return nil, fmt.Errorf("reading the value of %s: %w", key, err)
		}
		return read, nil
	}
	doc, err := yaml.LoadString(text, key)
	if err != nil {
		return nil, diag.Usage.Hint(fmt.Errorf("the value of %s is not YAML%s", key, where(err)),
			"quote a text with special characters for the shell and for YAML: '%s=\"...\"'; or take it from the standard "+
				"input with %s=-", key, key)
	}
	return doc.Value, nil
}

// where returns the position of the first error in a text, without the text.
func where(err error) string {
	var problems diag.List
	if !errors.As(err, &problems) || len(problems) == 0 {
		return ""
	}
	return fmt.Sprintf(": line %d, column %d", problems[0].Pos.Line, problems[0].Pos.Col)
}

func (in *Input) read(file string, stdin bool) (string, error) {
	r, err := in.open(file, stdin)
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, largestSetting+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > largestSetting:
		return "", fmt.Errorf("it has more than %d bytes", largestSetting)
	case len(data) == 0:
		return "", diag.Usage.Hint(errors.New("there is none"), "write %s to set an empty text", `KEY=""`)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

func (in *Input) open(file string, stdin bool) (io.ReadCloser, error) {
	if !stdin {
		if in.Open == nil {
			return nil, errors.New("files are not read here")
		}
		return in.Open(file)
	}
	if in.Stdin == nil {
		return nil, errors.New("the standard input can be read for one value only")
	}
	r := io.NopCloser(in.Stdin)
	in.Stdin = nil
	return r, nil
}
