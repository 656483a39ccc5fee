package packaging

import "io/fs"

// maxSearched is the maximum size, in bytes, of files that are searched for names.
const maxSearched = 1 << 20

// search visits the wanted files of a tree.
func search(tree fs.FS, wanted func(file string) bool, visit func(file string, data []byte)) error {
	return fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || !wanted(file) {
			return nil
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxSearched {
			return err
		}
		data, err := fs.ReadFile(tree, file)
		if err == nil {
			visit(file, data)
		}
		return err
	})
}
