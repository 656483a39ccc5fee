package recipe

// Parse reads a recipe.
func Parse(data []byte, file string) (Recipe, error) {
	p := parser{file: file}
	return p.parse(data)
}
