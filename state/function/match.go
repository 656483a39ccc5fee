package function

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Matches reports whether an expression matches the host. An invalid expression is logged and matches nothing, as
// in Salt.
func (f *Facts) Matches(q Query, expression any) bool {
	text, ok := expression.(string)
	if !ok || f.Match == nil {
		f.WriteLog("error", "match."+q.Kind+": there is nothing to match")
		return false
	}
	if q.Delimiter == "" {
		q.Delimiter = ":"
	}
	q.Expression = text
	matched, err := f.Match(q)
	if err != nil {
		f.WriteLog("error", fmt.Sprintf("match.%s: %v", q.Kind, err))
	}
	return matched && err == nil
}

// Matcher returns Matches for a kind of expression, or an error if the kind is unknown.
func (f *Facts) Matcher(kind, id string) (func(expression any) bool, error) {
	kinds := []string{"compound", "glob", "list", "pcre", "grain", "grain_pcre", "pillar", "pillar_pcre", "ipcidr"}
	for _, k := range kinds {
		if k == kind {
			return func(expression any) bool { return f.Matches(Query{Kind: kind, ID: id}, expression) }, nil
		}
	}
	return nil, diag.Call.Hint(fmt.Errorf("%q is not a way to match hosts", kind), "%s", diag.DidYouMean(kind, kinds))
}
