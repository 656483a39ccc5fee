package syntax_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/jinja/syntax"
)

func TestUnclosedBlocksNameTheirEnd(t *testing.T) {
	for text, end := range map[string]string{
		"{% if a %}": "endif", "{% if a %}{% else %}": "endif", "{% if a %}{% elif b %}": "endif",
		"{% for a in b %}": "endfor", "{% for a in b %}{% else %}": "endfor", "{% macro m() %}": "endmacro",
		"{% call m() %}": "endcall", "{% set a %}": "endset", "{% filter upper %}": "endfilter",
		"{% block b %}": "endblock", "{% with a = 1 %}": "endwith",
	} {
		_, err := syntax.Parse("\n"+text+"\nx\n", syntax.Options{})
		var mistake *syntax.Error
		if !errors.As(err, &mistake) || !strings.HasSuffix(mistake.Hint, "of line 2 is not closed: add {% "+end+" %}") {
			t.Errorf("%s: %v, with the hint %+v", text, err, mistake)
		}
	}
}
