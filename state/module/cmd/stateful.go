package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// stateful reads the result from the output of a stateful command: a JSON object, or name=value words in the
// last line. The name changed says whether there was a change, and comment is the comment of the result; all
// others are reported as changes.
func stateful(ran *value.Map, ok bool) (module.Report, error) {
	out, _ := ran.Value("stdout").(string)
	if out == "" {
		report := module.Report{Comment: value.Str(ran.Value("stderr"))}
		return report, codeError(ran, ok)
	}
	said, rest, err := readResult(out)
	if err != nil {
		return module.Report{Changes: ran}, err
	}
	report := module.Report{Comment: value.Str(orEmpty(said.Value("comment")))}
	said.Delete("comment")
	changed, err := isTrue(said.Value("changed"))
	if err != nil {
		return module.Report{Changes: ran}, err
	}
	if changed {
		report.Changes = completed(said, ran, rest)
	}
	return report, codeError(ran, ok)
}

// completed returns the changes that a program printed, with the result of the run and the rest of the output added.
func completed(said, ran *value.Map, stdout string) *value.Map {
	for key, v := range ran.All() {
		if name := value.Str(key); !said.Has(name) {
			said.Set(name, v)
		}
	}
	said.Set("stdout", stdout)
	return said
}

func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}

func codeError(ran *value.Map, ok bool) error {
	if ok {
		return nil
	}
	return errors.New("the command ended with code " + value.Str(ran.Value("retcode")))
}

const lastLineHint = `its last line must read changed=yes comment="...", or its output be one JSON object`

// readResult parses the result in an output and returns the rest of the output.
func readResult(out string) (said *value.Map, rest string, err error) {
	if json.Valid([]byte(out)) {
		v, err := value.FromJSON([]byte(out))
		if m, ok := v.(*value.Map); ok && err == nil {
			return m, "", nil
		}
		return nil, "", errors.New("a stateful command printed JSON that is not an object")
	}
	last := strings.TrimRight(out, " \t\r\n")
	rest = out[:len(out)-1] // like Salt, drop only the last character of a single line
	if i := strings.LastIndexByte(last, '\n'); i >= 0 {
		rest, last = last[:i], last[i+1:]
	}
	said = value.NewMap()
	words, err := value.SplitWords(last)
	if err != nil {
		return nil, "", diag.Command.Hint(fmt.Errorf("the last line of a stateful command has a quote that is not ended: %s",
			last), lastLineHint)
	}
	for _, word := range words {
		name, v, ok := strings.Cut(word, "=")
		if !ok || strings.Contains(v, "=") {
			return nil, "", diag.Command.Hint(errors.New("a stateful command did not report its result"), lastLineHint)
		}
		said.Set(name, v)
	}
	return said, rest, nil
}

func isTrue(v any) (bool, error) {
	switch strings.ToLower(value.Str(v)) {
	case "true", "yes", "1":
		return true, nil
	case "false", "no", "0", "none":
		return false, nil
	}
	return false, errors.New("a stateful command reported changed=" + value.Str(v) + ", and yes or no was expected")
}
