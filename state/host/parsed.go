package host

import (
	"reflect"
	"sync"
)

// ParseCache caches parsed files that many states read.
type ParseCache struct {
	mu     sync.Mutex
	kept   map[parsedKey]parsedFile
	tables map[parsedKey]any // of the kernel; nil if this cache does not learn of commands
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

// ParsedTable is like Parsed for a file of the kernel, such as the table of mounts, whose attributes do not change with
// its content. It caches the result until a command runs that may change anything, or a unit changes.
func ParsedTable[T any](h *Host, path string, parse func(text string) T) (T, error) {
	key := parsedKey{path: path, kind: reflect.TypeFor[T]()}
	if v, ok := h.parsed.table(key); ok {
		return v.(T), nil
	}
	data, err := h.Files.ReadFile(path)
	if err != nil {
		var none T
		return none, err
	}
	made := parse(string(data))
	h.parsed.keepTable(key, made)
	return made, nil
}

func (p *ParseCache) table(key parsedKey) (any, bool) {
	if p == nil {
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.tables[key]
	return v, ok
}

func (p *ParseCache) keepTable(key parsedKey, made any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tables != nil {
		p.tables[key] = made
	}
}

// ForgetTables drops the results of ParsedTable.
func (h *Host) ForgetTables() { h.parsed.forget() }

func (p *ParseCache) forget() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.tables)
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
