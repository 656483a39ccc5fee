package host

import (
	"reflect"
	"sync"
)

// ParseCache caches parsed files that many states read.
type ParseCache struct {
	mu   sync.Mutex
	kept map[parsedKey]parsedFile
}

type parsedKey struct {
	path string
	kind reflect.Type
}

type parsedFile struct {
	as    Info
	value any
}

// Parsed reads a file and returns the result of parse. It caches the result until the file is replaced or changed,
// since many states read the same file. Callers share the result and must not change it.
func Parsed[T any](h *Host, path string, parse func(text string) T) (T, error) {
	return ParsedOf(h.Files, h.parsed, path, parse)
}

// ParsedOf is like Parsed for given files and a given cache.
func ParsedOf[T any](files Files, p *ParseCache, path string, parse func(text string) T) (T, error) {
	var none T
	info, err := files.Stat(path)
	if err != nil {
		return none, err
	}
	info.Accessed = info.Changed // a read changes the access time, which does not count
	key := parsedKey{path: path, kind: reflect.TypeFor[T]()}
	if v, ok := p.get(key, info); ok {
		return v.(T), nil
	}
	data, err := files.ReadFile(path)
	if err != nil {
		return none, err
	}
	made := parse(string(data))
	p.put(key, parsedFile{as: info, value: made})
	return made, nil
}

func (p *ParseCache) get(key parsedKey, info Info) (any, bool) {
	if p == nil {
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	file, ok := p.kept[key]
	return file.value, ok && file.as == info
}

func (p *ParseCache) put(key parsedKey, file parsedFile) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil {
		p.kept = map[parsedKey]parsedFile{}
	}
	p.kept[key] = file
}
