package exec

// Results holds the results of a run by tag and in order.
type Results struct {
	list  []*Result
	byTag map[string]*Result
}

func newResults() *Results { return &Results{byTag: map[string]*Result{}} }

func (r *Results) put(result *Result) {
	tag := result.Tag()
	if old, ok := r.byTag[tag]; ok {
		*old = *result
		return
	}
	r.byTag[tag] = result
	r.list = append(r.list, result)
}

// Get returns the result of a tag, or nil.
func (r *Results) Get(tag string) *Result { return r.byTag[tag] }

// All returns the results in the order of the run.
func (r *Results) All() []*Result { return r.list }
