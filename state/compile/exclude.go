package compile

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// excludedFiles returns the SLS files that are excluded, whose extensions are ignored.
func excludedFiles(high *value.Map) map[string]bool {
	files := map[string]bool{}
	list, _ := high.Value(KeyExclude).(*value.List)
	if list == nil {
		return files
	}
	for _, item := range list.Items {
		switch item := item.(type) {
		case string:
			files[item] = true
		case *value.Map:
			if sls, ok := item.Value("sls").(string); ok {
				files[sls] = true
			}
		}
	}
	return files
}

// exclude removes the declarations that the files exclude: those of whole SLS files, by glob, and single IDs.
func exclude(high *High) {
	list, _ := high.Data.Value(KeyExclude).(*value.List)
	high.Data.Delete(KeyExclude)
	if list == nil {
		return
	}
	files, ids := excluded(list)
	if len(files) > 0 {
		ids = append(ids, idsIn(high.Data, files)...)
	}
	for _, id := range ids {
		high.Data.Delete(id)
	}
}

// excluded returns the SLS files and the IDs that a list of exclude names.
func excluded(list *value.List) (files, ids []string) {
	for _, item := range list.Items {
		switch item := item.(type) {
		case string:
			files = append(files, item)
		case *value.Map:
			if sls, ok := item.Value("sls").(string); ok && item.Len() == 1 {
				files = append(files, sls)
			}
			if id, ok := item.Value("id").(string); ok && item.Len() == 1 {
				ids = append(ids, id)
			}
		}
	}
	return files, ids
}

func idsIn(high *value.Map, files []string) (ids []string) {
	for id, body := range high.All() {
		m, ok := body.(*value.Map)
		if !ok || internal(id) {
			continue
		}
		sls, _ := m.Value(KeySLS).(string)
		for _, pattern := range files {
			if sls != "" && Match(pattern, sls) {
				ids = append(ids, value.Str(id))
				break
			}
		}
	}
	return ids
}

// withoutDot returns the state of a requisite written as state.function.
func withoutDot(state string) string {
	before, _, _ := strings.Cut(state, ".")
	return before
}
