// Package weights is what a model needs of the file or files that its weights lie in, whatever
// their format: gguf has one file with everything, safetensors a directory.
//
// It never reads a file itself and knows no architecture: names and hyper-parameters are as the
// format has them, and package model translates.
package weights
