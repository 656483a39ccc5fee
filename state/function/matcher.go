package function

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// matches asks. An expression that makes no sense is told to the log and matches nothing, as in Salt.
func (f *Facts) matches(q Query, expression any) bool {
	text, ok := expression.(string)
	if !ok || f.Match == nil {
		f.log("error", "match."+q.Kind+": there is nothing to match")
		return false
	}
	if q.Delimiter == "" {
		q.Delimiter = ":"
	}
	q.Expression = text
	matched, err := f.Match(q)
	if err != nil {
		f.log("error", fmt.Sprintf("match.%s: %v", q.Kind, err))
	}
	return matched && err == nil
}

// matcher checks the name of a kind of match.
func (f *Facts) matcher(kind, id string) (func(expression any) bool, error) {
	kinds := []string{"compound", "glob", "list", "pcre", "grain", "grain_pcre", "pillar", "pillar_pcre", "ipcidr"}
	for _, k := range kinds {
		if k == kind {
			return func(expression any) bool { return f.matches(Query{Kind: kind, ID: id}, expression) }, nil
		}
	}
	return nil, diag.WithHint(fmt.Errorf("%q is no way to match hosts", kind), "%s", diag.DidYouMean(kind, kinds))
}
