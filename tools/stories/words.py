"""The word lists the stories are built from.

Only data lives here.  Every word is simple on purpose: a model of under two
million parameters has to learn all of them.
"""

BOYS = """Tom Ben Sam Max Jack Tim Leo Sami Finn Noah Luke Adam Dan Joe Nick
Oscar Henry Oliver Theo Felix Hugo Ethan Jake Ryan Billy Bobby Charlie Daniel
David Eli Frank George Harry Ian Jacob Kevin Liam Mark Mike Nathan Owen Paul
Peter Ray Rob Roy Sean Simon Steve Ted Toby Tony Will Zack Ali Omar Ravi Kenji
Mateo Diego Luca Marco Anton Emil Jonas Karl""".split()

GIRLS = """Lily Anna Mia Sue Emma Lucy Sara Zoe Amy Ella Kate Jane Rosie Mary
Molly Daisy Grace Ruby Nina Lola Ava Bella Chloe Clara Dora Eva Fiona Gina
Hannah Holly Ida Iris Ivy Jenny Jill Julia Kim Kitty Laura Lena Lisa Maya Meg
Nora Olivia Penny Polly Rachel Rita Sally Sofia Stella Tara Tina Vera Violet
Wendy Alice Amina Leila Mei Yuki Carmen Marta Elsa Freya""".split()

# Names for animals, for heroes as well as for pets.
ANIMAL_NAMES_HE = """Pip Bo Rex Max Coco Benny Hoppy Fluff Buddy Bruno Gus Otis
Milo Ollie Teddy Rusty Spot Biscuit Barney Basil Chip Dash Fuzzy Moss Nibbles
Pepper Patch Rocky Scout Sparky Tiny Waffles Ziggy Bingo Sunny""".split()

ANIMAL_NAMES_SHE = """Bella Luna Lulu Poppy Honey Ginger Mimi Misty Nala Olive
Peach Pearl Rosie Tilly Willow Dot Fern Hazel Junie Kiki Maple Minnie Molly
Pixie Snowy Socks Velvet Cleo Clover Cherry Bubbles Button Goldie Penny
Daisy""".split()

# Animals that can be the hero of a story, with the home they live in.
ANIMAL_HOMES = {
    "rabbit": "burrow", "bunny": "burrow", "mouse": "hole", "fox": "den",
    "bear": "cave", "squirrel": "tree", "duck": "nest", "frog": "pond",
    "owl": "tree", "hedgehog": "burrow", "turtle": "pond", "mole": "tunnel",
    "beaver": "dam", "raccoon": "tree", "deer": "glade", "badger": "den",
    "pig": "barn", "lamb": "barn", "goat": "barn", "pony": "barn",
    "kitten": "basket", "puppy": "basket", "cat": "house", "dog": "house",
    "monkey": "tree", "elephant": "glade", "lion": "den", "penguin": "nest",
    "bird": "nest", "chick": "nest", "dragon": "cave",
}
SMALL_ANIMALS = ["mouse", "kitten", "chick", "squirrel", "mole", "hedgehog", "bird", "frog"]
BIG_ANIMALS = ["bear", "elephant", "lion", "deer", "goat", "pony", "badger"]
FAST_ANIMALS = ["rabbit", "fox", "deer", "pony", "squirrel", "dog"]
SLOW_ANIMALS = ["turtle", "hedgehog", "mole", "duck", "pig", "snail"]
EARTHBOUND = ["rabbit", "mouse", "frog", "turtle", "pig", "kitten", "puppy", "bear", "hedgehog", "penguin"]

PETS = ["dog", "dog", "dog", "cat", "cat", "puppy", "kitten", "rabbit", "bunny", "hamster", "pony", "parrot"]

KID_ADJ = """little small young happy kind brave curious cheerful clever shy
funny quiet playful smart gentle busy""".split()
ANIMAL_ADJ = """little small tiny young happy kind brave curious fluffy clever
shy funny quiet playful brown white gray soft""".split()
PET_ADJ = """little small big fluffy happy brown black white gray silly playful
funny friendly old lazy""".split()

COLORS = "red blue green yellow pink purple orange white brown gold silver black".split()
QUALITIES = "big small little tiny shiny new old pretty soft round".split()

# Toys by what can happen to them.
FLYING_TOYS = ["kite", "balloon", "toy plane", "paper plane", "ball", "hat", "frisbee"]
FLOATING_TOYS = ["boat", "toy boat", "ball", "paper boat", "toy duck", "hat"]
BREAKABLE_TOYS = ["toy car", "truck", "doll", "toy train", "robot", "music box", "drum", "wagon", "toy plane", "clock", "puppet", "toy horse", "guitar", "flute",
                   "lamp", "tractor", "rocket", "bus", "teapot", "crown", "sled", "toy dinosaur", "camera", "mirror"]
SOFT_TOYS = ["teddy bear", "doll", "toy rabbit", "blanket", "toy dog", "pillow", "toy elephant", "puppet"]
SMALL_THINGS = ["ball", "hat", "book", "ring", "key", "spoon", "shell", "coin", "whistle", "scarf", "shoe", "bell", "ribbon", "cup", "marble", "crayon", "mitten", "button"]
TOYS = sorted(set(FLYING_TOYS + FLOATING_TOYS + BREAKABLE_TOYS + SOFT_TOYS + ["ball", "ball", "truck", "car", "train", "doll", "top", "puzzle", "swing", "bike", "scooter", "jump rope", "hoop", "bucket", "shovel", "block"]))
SHARE_TOYS = ["ball", "truck", "car", "train", "doll", "kite", "drum", "robot", "swing", "bike", "scooter", "jump rope", "hoop", "bucket", "shovel", "puzzle", "wagon", "toy boat", "toy plane", "teddy bear", "guitar",
              "sled", "rocket", "tractor", "flute", "bus", "toy dinosaur", "crown", "trumpet", "tent"]

BAKED = ["cake", "apple pie", "loaf of bread", "berry pie", "carrot cake", "chocolate cake", "banana cake", "honey cake"]
MISSING_FOOD = ["eggs", "milk", "flour", "sugar", "butter", "honey"]
TREATS = ["cookies", "berries", "candies", "cherries", "muffins", "nuts", "grapes", "pancakes", "plums"]
PICNIC_FOOD = ["sandwich", "apple", "cookie", "muffin", "banana", "pear", "cheese roll", "piece of cake"]
FRUITS = ["apple", "pear", "peach", "plum", "orange", "banana"]

FLOWERS = ["rose", "sunflower", "tulip", "daisy", "lily"]
VEGETABLES = ["carrot", "pumpkin", "turnip", "tomato", "melon", "cabbage"]

# Places: (noun, where, to where)
OUTDOORS = [
    ("park", "in the park", "to the park"),
    ("garden", "in the garden", "to the garden"),
    ("forest", "in the forest", "to the forest"),
    ("beach", "at the beach", "to the beach"),
    ("lake", "by the lake", "to the lake"),
    ("river", "by the river", "to the river"),
    ("meadow", "in the meadow", "to the meadow"),
    ("farm", "on the farm", "to the farm"),
    ("hill", "on the hill", "to the hill"),
    ("playground", "at the playground", "to the playground"),
    ("pond", "by the pond", "to the pond"),
    ("field", "in the field", "to the field"),
    ("yard", "in the yard", "to the yard"),
    ("woods", "in the woods", "to the woods"),
]
LAND_PLACES = [p for p in OUTDOORS if p[0] in ("park", "garden", "forest", "meadow", "farm", "hill", "field", "woods", "yard")]
TREE_PLACES = [p for p in OUTDOORS if p[0] in ("park", "garden", "forest", "meadow", "farm", "hill", "woods", "yard", "playground")]
WATERS = [p for p in OUTDOORS if p[0] in ("lake", "river", "pond")]
TOWN_PLACES = [
    ("market", "at the market", "to the market"),
    ("zoo", "at the zoo", "to the zoo"),
    ("fair", "at the fair", "to the fair"),
    ("store", "in the store", "to the store"),
    ("library", "in the library", "to the library"),
    ("museum", "in the museum", "to the museum"),
]
VILLAGES = ["a small village", "a little house by the sea", "a small town", "a green valley", "a tall house on a hill",
            "a big city", "a cozy cottage", "a little house near the forest", "a yellow house"]

INDOOR_SPOTS = ["under the bed", "behind the couch", "in the toy box", "under the table", "in the closet", "behind the door",
                "in the kitchen", "under the chair", "on the shelf", "in the bathroom", "behind the curtain", "under the rug",
                "in the laundry basket", "on the stairs", "in a big box"]
OUTDOOR_SPOTS = ["behind a big rock", "in the tall grass", "behind the old oak tree", "under a bush", "near the fence",
                 "under the bench", "behind the shed", "under a pile of leaves", "by the gate", "in a hollow log",
                 "next to the well", "between the flowers", "in the sand", "near the bridge"]

KID_HOBBIES = ["play outside", "sing songs", "draw pictures", "run and jump", "read books", "help people", "climb trees",
               "look at the stars", "ride a bike", "dance", "build things", "play with friends", "tell jokes", "collect shells",
               "watch the birds", "dig in the sand", "make new friends", "paint", "bake with Grandma", "splash in puddles"]
ANIMAL_HOBBIES = ["play in the sun", "sing songs", "run and jump", "look for berries", "roll in the grass", "help others",
                  "look at the stars", "dance", "play with friends", "tell jokes", "collect leaves", "watch the clouds",
                  "dig holes", "make new friends", "hide in the tall grass", "splash in puddles", "explore", "smell the flowers"]

# Skills: (to do it, doing it, what goes wrong, the thing needed or "")
SKILLS = [
    ("ride a bike", "riding a bike", "fell off the bike", "rode the bike all the way down the street"),
    ("swim", "swimming", "swallowed some water", "swam all the way across the pool"),
    ("whistle", "whistling", "only blew air", "whistled a whole song"),
    ("skate", "skating", "slipped and sat down hard", "skated in a big circle"),
    ("jump rope", "jumping rope", "tripped over the rope", "jumped ten times in a row"),
    ("catch a ball", "catching a ball", "dropped the ball", "caught the ball with both hands"),
    ("climb the big tree", "climbing the tree", "slid back down", "climbed all the way to the top"),
    ("play the drum", "playing the drum", "hit the wrong side", "played a happy beat"),
    ("play the piano", "playing the piano", "hit the wrong notes", "played a whole song"),
    ("draw a horse", "drawing a horse", "made it look like a dog", "drew a fine horse with long legs"),
    ("read", "reading", "mixed up the letters", "read a whole page"),
    ("dance", "dancing", "stepped on the wrong foot", "danced around the whole room"),
    ("tie a bow", "tying a bow", "made a big knot", "tied a neat bow"),
    ("fly a kite", "flying a kite", "let the kite fall to the ground", "made the kite fly high in the sky"),
]
ANIMAL_SKILLS = [
    ("swim", "swimming", "swallowed some water", "swam all the way across the pond"),
    ("climb the big tree", "climbing the tree", "slid back down", "climbed all the way to the top"),
    ("dance", "dancing", "stepped on the wrong foot", "danced around the whole meadow"),
    ("sing", "singing", "sang the wrong notes", "sang a whole song"),
    ("jump over the stream", "jumping", "landed in the water", "jumped right over the stream"),
    ("whistle", "whistling", "only blew air", "whistled a whole song"),
    ("dig a hole", "digging", "got dirt in both eyes", "dug a deep round hole"),
    ("build a nest", "building a nest", "dropped all the twigs", "built a warm and cozy nest"),
    ("catch a ball", "catching a ball", "dropped the ball", "caught the ball and held it tight"),
]

FAMILY = [  # (after "his/her", as a name, he/she)
    ("mom", "Mom", "she"), ("mom", "Mom", "she"), ("dad", "Dad", "he"), ("dad", "Dad", "he"),
    ("grandma", "Grandma", "she"), ("grandpa", "Grandpa", "he"),
    ("aunt", "Auntie", "she"), ("uncle", "Uncle", "he"),
]
NEIGHBORS = [("Mrs. Green", "she"), ("Mr. Brown", "he"), ("Mrs. Hill", "she"), ("Mr. Wood", "he"), ("Mrs. Bell", "she"),
             ("Mr. Baker", "he"), ("Mrs. Rose", "she"), ("Mr. Fox", "he"), ("Mrs. Lane", "she"), ("Mr. Stone", "he")]

LESSONS = {
    "tidy": ["it is good to put things away", "a tidy room is a happy room", "things are easy to find when they have a place"],
    "share": ["sharing makes everything more fun", "it is nice to take turns", "sharing is better than fighting", "a toy is more fun with a friend"],
    "help": ["it feels good to help others", "a kind deed is never too small", "good friends help each other", "helping makes the heart warm"],
    "ask": ["it is okay to ask for help", "asking for help is a smart thing to do", "big problems get small when someone helps"],
    "try": ["practice makes hard things easy", "it is important to keep trying", "nobody learns everything in one day", "you should never give up"],
    "again": ["it is always good to try again", "a new start can be even better", "you should never give up"],
    "honest": ["it is always best to tell the truth", "telling the truth is brave", "a lie only makes things worse"],
    "patient": ["good things take time", "it pays to be patient", "waiting can be worth it"],
    "brave": ["being brave means trying even when you are scared", "scary things are often not scary at all", "a little courage can go a long way"],
    "kind": ["it is good to be kind", "kindness always comes back", "a kind word can change a whole day"],
    "friend": ["a new friend can be anywhere", "you should always give others a chance", "a friend makes every day better"],
    "greedy": ["too much of a good thing is not good", "it is wise to stop in time", "it is better to share than to eat it all"],
    "careful": ["it is important to be careful", "a little care saves a lot of trouble", "it is smart to think first"],
    "listen": ["it is good to listen", "{g} often knew best", "it is smart to listen to good advice"],
    "self": ["everyone is good at something", "it is fine to be just the way you are", "being small can be a great thing"],
    "proud": ["it is not nice to brag", "slow and steady can win", "it is better to be kind than to be first"],
    "team": ["together they could do anything", "many hands make hard work easy", "working together is the best way"],
    "give": ["giving is even better than getting", "the best gifts come from the heart", "a gift made with love is the best gift"],
}
