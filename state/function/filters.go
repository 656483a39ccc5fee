package function

import "github.com/corpus-agent/corpus-agent/state/jinja"

// Filters are Salt's filters that look at programs and files of the host.
func Filters(f *Facts) map[string]jinja.Filter {
	filters := fileFilters(f)
	filters["which"] = whichFilter(f)
	return filters
}
