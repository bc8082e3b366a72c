package recall

import "strings"

// names and words are the closed vocabulary: every one of them is a single token when it stands
// after a space. tools/recall/words.py has the same lists, and a test compares them.
var (
	names = strings.Fields(`
Aaron Abigail Adam Adele Agnes Aisha Albert Alice Alma Amara Amelia Amina Amos Ana Andre Anita
Anna Anton Arthur Astrid August Aurora Axel Ayumi Barbara Basil Beatrice Bella Benjamin Bernard
Bianca Boris Bruno Camila Carl Carmen Cecilia Cesar Chen Clara Claude Clement Colin Conrad Cora
Cyrus Dahlia Dalia Daniel Daphne Darius David Delia Diana Diego Dina Dmitri Dora Edgar Edith
Edmund Eduardo Elena Elias Elisa Ella Elsa Emil Emma Enrique Eric Esther Ethan Eva Ezra Fatima
Felix Fernanda Fiona Flora Francis Frank Frida Gabriel Gaspar Gemma George Gerald Gita Gloria
Grace Greta Gustav Hannah Harold Harriet Hassan Hector Hedda Helen Henry Hilda Hiro Hugo Ian
Ibrahim Ida Igor Imani Ingrid Irene Iris Isaac Isabel Ivan Jacob Jade Jamal Janet Jasper Javier
Jerome Joan Joel Jonas Jorge Josef Judith Julia Jun Karen Karim Karl Katya Keiko Kenji Kira
Klaus Kofi Lara Laura Lars Layla Leila Lena Leo Leon Lewis Lidia Lila Linus Liv Lola Lorenzo
Louis Lucas Lucia Luna Lydia Mabel Magnus Malik Manuel Mara Marco Margot Maria Marta Martin
Mateo Matilda Maya Mei Mila Milo Mina Miriam Mona Morris Musa Nadia Naomi Nelson Nico Nina Noah
Nora Norman Octavia Olga Oliver Omar Oscar Otto Pablo Paloma Paul Pearl Pedro Percy Petra Philip
Priya Quentin Rachel Rafael Rahul Ramona Raul Rebecca Rene Rita Robert Rosa Rufus Ruth Sabina
Salma Samuel Sara Selma Serge Shirin Sigrid Silas Simon Sofia Sonia Stella Sven Sylvia Tamara
Tariq Teresa Theo Thomas Tobias Uma Ursula Valeria Vera Victor Viola Vivian Walter Wanda Wilma
Xavier Yara Yolanda Yusuf Zara Zelda Zoe Zora`)
	words = strings.Fields(`
acorn amber anchor apple arrow badger bamboo barley basket beacon birch bishop bottle branch
bridge bronze bucket butter button cabin cactus camel candle canyon carbon castle cedar chalk
cherry cliff clover cobalt comet copper coral cotton crane crystal dagger desert diamond dragon
drum eagle ember engine falcon feather fern fiddle finch flint forest fossil fox garden garlic
ginger glacier globe granite grape hammer harbor hazel helmet heron honey hornet island ivory
jacket jaguar jasmine jewel jungle kettle kitten ladder lagoon lantern lemon lily lion lizard
magnet mango maple marble meadow melon mirror monkey mosaic moss mountain mustard needle nickel
nutmeg oak ocean olive onion orchid otter oyster paddle palace panda paper parrot peach pebble
pepper pigeon pillow planet plum pocket pollen poppy prism pumpkin quartz quill rabbit radish
raven ribbon river robin rocket saddle saffron salmon sand sapphire shadow shell silver spark
spider spruce squid stone stork sugar summit swan tempest thistle thunder tiger timber tomato
topaz torch tower trumpet tulip tunnel turtle valley velvet violet walnut whale willow window
winter wolf yarrow zebra zephyr`)
)

// Names returns the names that may hold a code. The slice is shared, read only.
func Names() []string { return names }

// Words returns the words that codes are made of. The slice is shared, read only.
func Words() []string { return words }
