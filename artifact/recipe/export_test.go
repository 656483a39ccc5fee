package recipe

// Parse reads a recipe.
func Parse(data []byte, file string) (Recipe, error) { return parse(data, parser{file: file}) }
