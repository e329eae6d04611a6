"""The plot skeletons.

Each function tells one story into the Story it is given.  What is introduced
early is kept in the story's slots and comes back later, so that the ending
fits the beginning.  Every plot: someone wants something, something is in the
way, something or someone helps, and a feeling or a lesson ends it.
"""

import words as W


def lost_toy(s):
    s.anyone(0.2)
    s.toy(W.SOFT_TOYS + W.BREAKABLE_TOYS + ["ball", "car", "book", "hat"])
    s.owns()
    s.one_day()
    s.add("{oneday}, {h} could not find the {toy}.", "{oneday}, the {toy} was gone.", "But {oneday}, {he} could not find it.")
    s.add('"Where is my {toy}?" {h} [asked|cried].', '{h} felt [sad|worried]. "Where is my {adj} {toy}?" {he} asked.', "{h} was very sad.")
    spots = s.rng.sample(W.INDOOR_SPOTS, 3)
    s.v["s1"], s.v["s2"], s.v["s3"] = spots
    s.add("{He} looked {s1}. It was not there.", "First, {he} looked {s1}, but the {toy} was not there.")
    s.add("{He} looked {s2}. It was not there [either|too].", "Then {he} looked {s2}, but there was [nothing|only dust].")
    how = s.pick(["family", "pet", "alone", "sibling"])
    key = "tidy"
    if how == "family":
        s.family()
        s.add('{h} asked {g} for help. "Let us look together," said {G}.', '"Can you help me?" {h} asked {g}. "Of course," said {G}.')
        s.add("They looked {s3}. There was the {adj} {toy}!", "{G} looked {s3} and smiled. The {toy} was there!")
        s.add('"Thank you, {G}!" said {h}, and [gave {Ghim} a big hug|hugged {Ghim}].', '"You found it!" {h} [cried|shouted]. "Thank you, {G}!"')
        key = s.pick(["tidy", "ask"])
        end = None
    elif how == "pet":
        s.pet(["dog", "cat", "puppy", "kitten"])
        s.add("Then {his} {p} {pn} [ran|came] to {him}. {pn} wanted to help.", "{His} {p} {pn} saw that {h} was sad.")
        s.add("{pn} sniffed and sniffed. Then {pnhe} ran {s3}. There was the {toy}!" if s.v["s3"][:2] in ("un", "be") else "{pn} sniffed and sniffed. The {toy} was {s3}!")
        s.add('"Good {p}, {pn}!" said {h}.', '"Thank you, {pn}!" said {h}. "You are so smart!"')
        key, end = None, s.v["pn"]
    elif how == "sibling":
        s.sibling()
        s.add("Then {he} heard a sound {s3}. It was {sib}. {b} was playing with the {toy}.")
        s.add('"I am sorry," said {b}. "I [only wanted to play|should have asked first]." {h} was [angry|cross] at first, but then {he} smiled. "We can play together," {he} said.')
        key, end = "share", s.v["b"]
    else:
        s.add("Then {he} stopped and thought. {He} [remembered|knew]! {He} had played {s3} the day before.", "{He} sat down and thought hard. Where did {he} play last?")
        s.add("{He} ran to look, and there was the {adj} {toy}, {s3}!", "{He} looked {s3}. The {toy} was there!")
        end = None
    s.maybe(0.4, "{h} put the {toy} on {his} bed that night.", "After that, {h} always put the {toy} in the same place.")
    s.close(key, end)


def stuck_high(s):
    s.kid() if s.chance(0.75) else s.beast(W.EARTHBOUND)
    s.toy(W.FLYING_TOYS)
    s.owns()
    s.one_day()
    s.place(W.TREE_PLACES)
    s.add("{oneday}, {h} took the {toy} {to}.", "{oneday}, {he} went {to} with the {toy}.", "{oneday}, {h} was playing with the {toy} {at}.")
    s.add("[A strong wind|The wind] came and [carried|blew] the {toy} [up into|into] a tall tree.", "{He} threw it up high. It went up, up, up, and got stuck in a [tall|big] tree." if s.v["toy"] in ("ball", "paper plane", "toy plane", "frisbee") else "A big wind took the {toy} away. It got stuck in a [tall|big] tree.")
    s.add('"Oh no! My {toy}!" cried {h}.', '"Oh no!" said {h}. "My {toy} is stuck!"', "{h} looked up. The {toy} was too high.")
    s.add("{He} jumped, but the tree was too tall.", "{He} jumped and jumped, but {he} could not reach it.", "{He} tried to shake the tree, but the {toy} did not move.")
    s.maybe(0.4, "{He} tried with a long stick, but it was too short.", "{He} tried to climb, but {he} slid down.")
    helper = s.pick(["family", "bird", "friend", "squirrel", "wind"])
    end = None
    if helper == "family":
        s.family(["mom", "dad", "grandpa", "uncle"])
        s.add("{He} went to get {g}. {G} brought a long ladder.", "{G} came to help. {GHe} lifted {h} up on {Ghis} shoulders.")
        s.add("Soon the {toy} was back in {h}'s hands." if not s.animal else "Soon {h} had the {toy} back.", "{h} took the {toy} and smiled.")
        s.add('"Thank you, {G}!" {he} said.', '"Thank you!" said {h}. "You are welcome," said {G}.')
        end = s.v["G"]
    elif helper in ("bird", "squirrel"):
        s.v["who"] = helper
        s.v["move"] = "flew" if helper == "bird" else "ran"
        s.add('A [little|small|kind] {who} sat in the tree. "Do not be sad," said the {who}. "I can help you."',
              'Then a [little|small|kind] {who} came by. "Why are you sad?" asked the {who}. "My {toy} is in the tree," said {h}.')
        s.add("The {who} {move} up and pushed the {toy}. It fell down into the grass.", "The {who} {move} to the top and pulled the {toy} free.")
        s.add('"Thank you, little {who}!" said {h}. {He} gave the {who} [some nuts|some bread|a bit of apple].')
        end = f"the {helper}"
    elif helper == "friend":
        s.friend()
        s.add('Then {mf} came by. "I have an idea," said {f}. "Stand on my back!"', '{mf} saw it. "Let us work together," said {f}.')
        s.add("{h} climbed on {f}'s back and reached up high. {He} got the {toy}!", "{f} held {h} up, and {h} pulled the {toy} out of the tree.")
        s.add('"We did it!" they [shouted|cried].', '"Thank you, {f}!" said {h}. "Do you want to play too?"')
        end = s.v["f"]
    else:
        s.add("{h} sat down under the tree and waited. {He} did not cry.", "{h} took a deep breath and sat down to think.")
        s.add("Then the wind came back. It shook the tree, and the {toy} fell down [right next to {him}|into the grass].")
        s.add('"Thank you, wind!" {h} laughed.', "{h} laughed and picked up the {adj} {toy}.")
        s.close("patient")
        return
    s.maybe(0.5, "They played with the {toy} until the sun went down." if helper != "bird" else "{h} played with the {toy} while the bird sang.")
    s.close(s.pick(["ask", "help"]), end)


def broken_toy(s):
    s.anyone(0.15)
    s.toy(W.BREAKABLE_TOYS)
    s.owns()
    s.one_day()
    if s.chance(0.5):
        s.add("{oneday}, the {toy} fell [on the floor|off the table|down the stairs] and broke.", "{oneday}, {h} dropped the {toy}. It broke with a loud crack.")
        s.add('"Oh no! My {toy} is broken!" {h} cried.', "{h} looked at the pieces and began to cry.", "{h} was very sad.")
        s.family()
        s.add('{g} heard {him}. "Do not cry," said {G}. "We can fix it."', '{G} came and sat next to {him}. "Let me see," said {G}. "I think we can fix it."')
        s.add("{G} got some [glue|strong glue|glue and tape]. {h} held the pieces, and {G} put them together.", "They worked together all [afternoon|morning]. {h} held the pieces and {G} used [glue|tape].")
        s.add("Soon the {toy} was as good as new.", "After a while, the {adj} {toy} was [fixed|whole again].")
        s.add('"Thank you, {G}!" said {h}. {He} [hugged {Ghim}|gave {Ghim} a big hug].', '"You are the best, {G}!" said {h}.')
        s.close(s.pick(["ask", "careful", "team"]), s.pick([None, s.v["G"]]))
    else:
        s.friend()
        s.add("{oneday}, {mf} came to play. {f} [held|picked up] the {toy}, but it fell and broke.", "{oneday}, {mf} wanted to see the {toy}. {f} dropped it, and it broke.")
        s.add('"You broke my {toy}!" {h} [cried|shouted]. {He} was [very angry|angry and sad].')
        s.add('{f} looked down. "I am sorry," {fhe} said. "It was an accident."', '"I am so sorry," said {f}. {fHe} began to cry.')
        s.add("{h} saw that {f} was sad too. {He} was not angry anymore.", "{h} took a deep breath. {He} did not want to lose a friend.")
        s.add('"It is okay," said {h}. "We can fix it together."', '"I forgive you," {h} said. "Let us try to fix it."')
        s.add("They used [glue|tape] and worked hard. Soon the {toy} was whole again.", "They put the pieces together, one by one. The {toy} looked almost new.")
        s.close(s.pick(["kind", "team"]), s.v["f"])


def share_toy(s):
    s.anyone(0.25)
    s.toy(W.SHARE_TOYS)
    s.owns()
    s.friend()
    s.one_day()
    s.place(s.pick([W.LAND_PLACES, W.OUTDOORS]))
    s.add("{oneday}, {mf} came to play.", "{oneday}, {h} took the {toy} {to}. {mf} was there too.", "{oneday}, {h} met {mf} {at}.")
    s.add('"Can I play with your {toy}?" asked {f}.', '{f} saw the {toy}. "May I try it?" {fhe} asked.')
    s.add('"No! It is mine!" said {h}.', '"No," said {h}. "It is my {toy}." {He} held it tight.')
    s.add("{f} was sad and [walked away|sat down alone].", "{f} looked down and did not say a word. Then {fhe} walked away.")
    if s.chance(0.5):
        s.family()
        s.add('{h}\'s {gword} saw this. "{f} is your friend," said {G}. "It is more fun to play together."', '"Why is {f} sad?" asked {g}. {h} told {Ghim}. "You can take turns," said {G}.')
    else:
        s.add("{h} played alone, but it was not fun. {He} looked at {f} and felt bad.", "{h} played with the {toy}, but soon {he} was lonely.")
    s.add('{h} went to {f}. "I am sorry," {he} said. "You can play with my {toy} too."', '{h} ran after {f}. "Wait!" {he} said. "We can share the {toy}."')
    s.add('{f} smiled. "Thank you, {h}!"', '"Really? Thank you!" said {f} with a big smile.')
    s.add("They took turns and laughed a lot.", "They played with the {adj} {toy} together until it was time to go home.", "First {f} had a turn, and then {h} had a turn.")
    s.close("share", s.v["f"])


def lost_baby_animal(s):
    s.kid() if s.chance(0.7) else s.beast(["rabbit", "bear", "fox", "dog", "pony", "deer", "squirrel", "goat"])
    s.meet()
    s.one_day()
    s.place(W.LAND_PLACES if s.chance(0.7) else W.WATERS)
    baby, parent = s.pick([("duckling", "duck"), ("kitten", "cat"), ("puppy", "dog"), ("lamb", "sheep"), ("chick", "hen"), ("baby bird", "bird"), ("baby owl", "owl"), ("piglet", "pig")])
    s.v["baby"], s.v["parent"] = baby, parent
    s.v["badj"] = s.pick(["tiny", "little", "small", "yellow" if baby in ("duckling", "chick") else "fluffy"])
    s.add("{oneday}, {he} was walking {at} when {he} heard a [small|soft|sad] sound.", "{oneday}, {h} went for a walk {at}. {He} heard a [quiet|little] cry.")
    s.v["spot"] = s.pick(W.OUTDOOR_SPOTS)
    s.add("{spot}, {he} found a {badj} {baby}. It was all alone.", "{He} looked {spot}. There was a {badj} {baby}!")
    s.add('"[Hello|Oh], little {baby}. Are you lost?" asked {h}.', '"Where is your mother?" {h} asked. The {baby} [only cried|looked very sad].')
    s.add('"Do not be afraid. I will help you find your mother," {he} said.', "{h} wanted to help. {He} [picked up the {baby}|walked with the {baby}] very gently.")
    s.v["asked"] = s.pick(["cow", "horse", "farmer", "frog", "old goat", "old woman"])
    s.v["lm"] = s.pick(["barn", "big tree", "bridge", "old mill", "white fence", "red gate"])
    s.add('They met a {asked}. "Have you seen the mother of this {baby}?" asked {h}. "Look by the {lm}," said the {asked}.',
          'First they asked a {asked}. "I saw a {parent} near the {lm}," said the {asked}.')
    s.add("They walked to the {lm}. There was a big {parent}!", "They hurried to the {lm}, and there they saw the mother {parent}.")
    s.add("The {baby} ran to its mother. They were so happy to be together again.", "The {baby} jumped with joy. The mother {parent} was very happy.")
    s.add('"Thank you for your help," said the {parent}.' if s.animal else "The mother {parent} looked at {h} as if to say thank you.", "{h} waved goodbye to the little {baby}.")
    s.close("help")


def scared_night(s):
    s.anyone(0.35)
    s.v["night"] = "yes"
    s.meet()
    s.add("One night, {h} was in bed when {he} heard a [strange|loud|scary] noise.", "One dark night, {h} could not sleep. {He} heard a [strange|scary] sound.")
    s.v["noise"], thing = s.pick([("tap, tap, tap", "branch"), ("scratch, scratch", "cat"), ("bump, bump", "door"), ("hoo, hoo", "owl"), ("squeak, squeak", "mouse"), ("knock, knock", "branch"), ("whoosh", "curtain")])
    s.v["thing"] = {"branch": "a branch that touched the window in the wind", "cat": "a little cat that wanted to come inside", "door": "a door that moved in the wind",
                    "owl": "a friendly owl in the tree", "mouse": "a tiny mouse with a piece of cheese", "curtain": "the curtain that moved in the wind"}[thing]
    s.add('"{noise}," it went.', 'It went "{noise}".')
    s.add('"Is it a monster?" {h} whispered.', "{h} hid under the blanket. Was it a monster?", "{His} heart beat fast. {He} was very scared.")
    who = s.pick(["family", "alone", "sibling"])
    end = None
    if who == "family":
        s.family(["mom", "dad", "grandma", "grandpa"])
        s.add('{He} called {g}. "Let us look together," said {G}, and took a light.', '{g} came in. "What is wrong?" asked {G}. "There is a monster!" said {h}.')
        s.add("They held hands and looked.", "{G} turned on the light and they looked around.")
        end = s.v["G"]
    elif who == "sibling":
        s.sibling()
        s.add('{He} woke up {sib}. "I hear a monster," {he} said. "Then we will look together," said {b}.')
        s.add("They held hands and walked very slowly.", "They took a small light and went to look.")
        end = s.v["b"]
    else:
        s.add('But then {h} thought, "I can be brave." {He} [took a small light|got out of bed] and went to look.', "{h} took a deep breath. {He} wanted to be brave. {He} got up and went to see.")
    s.add("It was not a monster at all. It was only {thing}!", "And what was it? It was just {thing}!")
    s.add("{h} [laughed and laughed|laughed out loud].", '"Oh, it was only that!" said {h}.', "{h} was not scared anymore.")
    if thing == "cat":
        s.add("{He} let the cat in, and it slept on {his} bed all night.", "{He} gave the cat some milk. The cat purred.")
    elif thing == "mouse":
        s.add('"Good night, little mouse," {he} said.')
    elif thing == "owl":
        s.add('"Good night, owl," {he} said.')
    else:
        s.add("{He} went back to bed and slept well.", "Soon {he} was fast asleep.")
    s.close("brave", end if s.chance(0.4) else None, 0.75)


def learn_skill(s):
    s.anyone(0.35)
    s.v["todo"], s.v["doing"], s.v["fail"], s.v["win"] = s.pick(W.ANIMAL_SKILLS if s.animal else W.SKILLS)
    s.meet()
    s.add("{h} wanted to learn to {todo}.", "More than anything, {h} wanted to learn how to {todo}.", "But {h} could not {todo}. {He} wanted to learn it very much.")
    s.maybe(0.5, "All {his} friends could do it.", '"I want to {todo}," {he} said every day.')
    s.one_day()
    s.add("{oneday}, {he} tried, but {he} {fail}.", "The first time, {he} {fail}.", "{He} tried once, but {he} {fail}.")
    s.add("{He} tried again and {fail} again.", "{He} tried again, but it did not work.", "Some others laughed. {h} felt sad.")
    s.add('"I will never learn it!" {h} cried.', '"This is too hard," said {h}.', '"I give up," {h} said.')
    if s.chance(0.55):
        s.family()
        s.add('{g} sat down next to {him}. "I could not do it at first either," said {G}. "You must practice."', '"Do not give up," said {g}. "I will show you how."')
        end = s.v["G"]
    else:
        s.friend()
        s.add('{mf} came by. "I can help you," said {f}. "Watch me."', '"Do not give up," said {mf}. "Try a little every day."')
        end = s.v["f"]
    s.add("So {h} practiced every day. Each day it got a little better.", "So {h} tried and tried, day after day.", "{h} practiced in the morning and in the evening.")
    s.add("Then, one day, {he} {win}!", "At last, {he} {win}!", "After a week, {he} {win}.")
    s.v["end"] = end
    s.add('"I did it!" {h} shouted. {end} [clapped|cheered].', '"Look at me!" {he} [cried|called]. {end} was very proud.')
    s.close("try", None, 0.8)


def bake(s):
    s.anyone(0.25)
    s.v["cake"] = s.pick(W.BAKED)
    s.v["miss"] = s.pick(W.MISSING_FOOD)
    s.meet()
    s.family()
    s.one_day()
    s.v["why"] = s.pick(["for {G}'s birthday", "for a picnic", "for {g}", "for {his} friends"])
    s.v["why"] = s.render(s.v["why"])
    s.add("{oneday}, {h} wanted to bake a {cake} {why}.")
    s.add("{He} put on an apron and got a big bowl." if not s.animal else "{He} got a big bowl and a spoon.", "{He} went to the kitchen and got a big bowl.")
    s.add("But there was a problem. There was no {miss}!" if s.v["miss"] != "eggs" else "But there was a problem. There were no eggs!",
          '"Oh no," said {h}. "We have no {miss}."')
    s.neighbor()
    if s.chance(0.5):
        s.add('{h} went next door to {n}. "Do you have some {miss}?" {he} asked.', '{h} knocked on the door of {n}. "May I please have some {miss}?" {he} asked.')
        s.add('"Of course," said {n}, and gave {him} some {miss}.', '{n} smiled. "Here you are," {nhe} said.')
        giver = s.v["n"]
    else:
        s.friend()
        s.add('{h} went to {mf}. "Do you have some {miss}?" {he} asked.', '{mf} came by. "We have {miss} at home," said {f}. "I will bring you some."')
        s.add('{f} gave {him} some {miss}. "Can I help you bake?" {fhe} asked. "Yes, please," said {h}.')
        giver = s.v["f"]
    s.v["giver"] = giver
    s.add("{h} mixed it all in the bowl. Then the {cake} went into the oven.", "{h} stirred and stirred. Then it was time to bake the {cake}.")
    s.add("Soon the [whole|] house smelled [good|sweet|wonderful].", "The {cake} smelled so good!", "They waited and waited. At last the {cake} was ready.")
    s.add("{h} gave the first piece to {giver} to say thank you.", '"Thank you for the {miss}," said {h}, and gave {giver} a big piece.')
    s.add('"This is the best {cake} ever!" said {giver}.', "{giver} took a bite and smiled.") if "loaf" not in s.v["cake"] else s.add('"This is the best bread ever!" said {giver}.')
    s.add("{G} was very [happy|proud] when {Ghe} saw the {cake}.", '{G} tasted it too. "You are a fine baker, {h}," {Ghe} said.')
    s.close(s.pick(["share", "ask", "give"]))


def seed(s):
    s.anyone(0.35)
    plant, kindp = s.pick([(p, "flower") for p in W.FLOWERS] + [(p, "vegetable") for p in W.VEGETABLES])
    s.v["plant"] = plant
    s.meet()
    s.family(["grandma", "grandpa", "mom", "dad"]) if s.chance(0.6) else s.neighbor()
    s.v["giver"], s.v["gv"] = (s.v["g"], s.v["G"]) if "g" in s.v else (s.v["n"], s.v["n"])
    s.one_day()
    s.add("{oneday}, {giver} gave {him} a [tiny|small|little] seed.", '{oneday}, {giver} gave {h} a seed. "It will be a {plant}," said {gv}.')
    s.add("{h} put the seed in the ground and gave it water.", "{h} dug a small hole, put the seed in, and watered it.")
    s.add("The next day, {he} looked. There was nothing.", "Every morning, {he} looked for the {plant}. There was only dirt.")
    s.add('"Why does it not grow?" {he} asked.', '"It is broken," said {h}. {He} was sad.', '"Maybe my seed is asleep," said {h}.')
    s.add('"You must wait," said {gv}. "It needs sun, water, and time."', '"Be patient," said {gv}. "Good things grow slowly."')
    s.add("So {h} waited. {He} gave it water every day.", "{h} watered the seed each morning and sang it a little song.", "So {h} did not give up. Rain came, and sun came.")
    s.add("Then one day, {he} saw a tiny green leaf!", "After many days, a little green leaf came out of the ground.")
    if kindp == "flower":
        s.v["col"] = s.pick(["red", "yellow", "pink", "purple", "white", "orange"])
        s.add("The leaf grew and grew, and soon there was a [beautiful|lovely] {col} {plant}.")
        s.add("{h} gave the {plant} to {gv}.", "{h} showed it to {gv}, and they smiled together.", "Bees and butterflies came to see it.")
    else:
        s.add("It grew and grew until there was a big, [fat|ripe|round] {plant}.")
        s.add("{h} made soup from the {plant} and shared it with {gv}." if plant != "melon" else "{h} cut the melon and shared it with {gv}.", '"Look how big it is!" said {h}. They ate the {plant} for dinner.')
    s.close("patient", None, 0.8)


def rainy_day(s):
    s.anyone(0.25)
    s.meet()
    s.place([p for p in W.OUTDOORS if p[0] not in ("yard", "garden")])
    s.one_day()
    s.add("One day, {h} wanted to go {to}. But it began to rain.", "One morning, {h} woke up and looked outside. {He} wanted to go {to}, but it was raining.")
    s.add('"Oh no," said {h}. "Now I cannot go {to}."', "{h} looked at the rain and felt [sad|cross].", '"I do not like rain," {h} said.')
    who = s.pick(["family", "sibling", "friend"])
    if who == "family":
        s.family()
        s.v["w"], s.v["intro"] = s.v["G"], s.v["g"]
    elif who == "sibling":
        s.sibling()
        s.v["w"], s.v["intro"] = s.v["b"], s.v["sib"]
    else:
        s.friend()
        s.v["w"], s.v["intro"] = s.v["f"], s.v["mf"]
    branch = s.pick(["fort", "puddles", "boat", "draw"])
    if branch == "fort":
        s.add('"We can have fun inside," said {intro}. "Let us build a [fort|castle|tent]!"')
        s.add("They took [blankets and pillows|chairs and blankets] and built a big one in the living room." if not s.animal else "They took leaves and sticks and built a big one.")
        s.add("They sat inside, told stories, and ate {treat}.".replace("{treat}", s.pick(W.TREATS)), "It was warm and cozy inside.")
    elif branch == "puddles":
        s.add('"Rain makes puddles," said {intro}. "And puddles are fun!"')
        s.add("They put on their boots and went outside." if not s.animal else "They ran outside into the rain.")
        s.add("Splash! They jumped in every puddle. {h} laughed and laughed.", "{h} jumped into a big puddle. Splash! {w} jumped too.")
    elif branch == "boat":
        s.add('"I have an idea," said {intro}. "Let us make [a boat out of paper|a little boat]!"')
        s.add("They made a small boat and put it in the water by the door.", "They made a boat with a tiny flag. It sailed in a puddle like a real ship.")
        s.add('"Go, little boat, go!" {h} called.', "{h} and {w} cheered for the little boat.")
    else:
        s.add('"We can draw {place_a}," said {intro}.'.replace("{place_a}", "the {place}"))
        s.add("They got paper and paint. {h} made a picture of the {place} with a big yellow sun.")
        s.add('"Now it is sunny," said {h}.', "{w} painted birds and trees.")
    s.add("After a while, the rain stopped. There was a [big|beautiful] rainbow in the sky.", "Then the sun came out, and they saw a rainbow.", "It rained all day, but {h} did not mind.")
    s.add('"I like rain now," said {h}.', '"Rainy days can be fun," {h} said.', "{h} did not feel sad anymore.")
    s.close(None, s.v["w"])


def new_friend(s):
    s.anyone(0.35)
    s.meet()
    s.friend()
    s.v["school"] = s.pick(["school", "the playground", "the park"]) if not s.animal else s.pick(["the meadow", "the forest", "the pond"])
    s.v["atschool"] = {"school": "at school"}.get(s.v["school"], "at " + s.v["school"] if s.v["school"] != "the forest" else "in the forest")
    s.one_day()
    s.v["newf"] = s.render("a new {fkind} named {f}")
    s.add("{oneday}, {newf} came to {school}.", "{oneday}, there was {newf} {atschool}.")
    s.add("{f} was shy and [stood alone|sat alone|did not speak].", "{f} did not know anyone. {fHe} sat [under a tree|in a corner] and looked sad.")
    reason = s.pick(["none", "different"])
    if reason == "different":
        s.v["odd"] = s.pick(["a funny hat", "one blue shoe and one red shoe", "a very big bag", "a strange coat", "big round glasses"]) if not s.animal else s.pick(["very big ears", "a crooked tail", "funny spots", "a very loud voice", "very big feet"])
        s.add("{f} had {odd}. The others laughed and did not want to play with {fhim}.")
    else:
        s.add("The others were busy and did not see {fhim}.", "Nobody asked {fhim} to play.")
    s.add('{h} remembered how it felt to be alone. {He} walked over and said, "Hello, I am {h}."', '{h} went to {f}. "Hi! My name is {h}," {he} said. "Do you want to play with me?"')
    s.add('{f} smiled a little. "I am {f}," {fhe} said.', '"Yes, please," {f} said [softly|in a small voice].')
    s.v["game"] = s.pick(["hide and seek", "tag", "with a ball", "in the sand", "a jumping game", "a singing game"])
    s.add("They played {game} all [day|afternoon|morning].", "They played {game} and laughed a lot.")
    s.add("Soon the others came and wanted to play too.", "{f} told {h} many funny stories.", "{f} shared {fhis} lunch with {h}.")
    s.add('"You are my first friend here," said {f}. "Thank you."', '"Will you play with me tomorrow?" asked {f}. "Of course," said {h}.')
    s.close("friend", s.v["f"])


def sick_friend(s):
    s.anyone(0.35)
    s.meet()
    s.friend()
    s.one_day()
    s.add("{oneday}, {h} went to play with {mf}. But {f} was sick in bed.", "{oneday}, {mf} did not come out to play. {f} was sick.")
    s.add('"My [head|tummy|throat] hurts," said {f}.', "{f} looked tired and sad.", '"I cannot play today," {f} said sadly.')
    s.add('{h} wanted to make {fhim} feel better. "I know what to do," {he} said.', "{h} thought about how to help {fhim}.")
    gift = s.pick(["soup", "picture", "flowers", "book"])
    if gift == "soup":
        s.family(["mom", "dad", "grandma"])
        s.add("{He} ran home and made warm soup with {g}.", '{He} asked {g} to help {him} make soup. "What a kind idea," said {G}.')
        s.add("{h} carried the soup to {f} very slowly. {He} did not spill a drop.", "Then {he} brought the warm soup to {f}.")
        s.add('"Mmm, this is good," said {f}. {fHe} ate it all.')
    elif gift == "picture":
        s.v["pic"] = s.pick(["a big sun and two friends", "a funny dog in a hat", "a rainbow", "the two of them on a boat", "a castle"])
        s.add("{He} sat down and drew a picture of {pic}.", "{He} took paper and paint and made a picture of {pic}.")
        s.add('{h} gave it to {f}. "This is for you," {he} said.', "{f} put the picture next to the bed and smiled.")
    elif gift == "flowers":
        s.v["flower"] = s.pick(["roses", "tulips", "daisies", "sunflowers"])
        s.add("{He} ran to the [garden|meadow] and picked some pretty {flower}.")
        s.add('"These are for you," said {h}. The room smelled sweet.', "{f} smelled the {flower} and smiled.")
    else:
        s.add("{He} got {his} favorite book and sat down next to {f}.")
        s.add("{h} read a story about [a brave dragon|a funny mouse|a little star|a pirate ship]. {f} listened and laughed.")
    s.add("The next day, {f} felt [much|a little] better.", "After two days, {f} was well again.", "Soon {f} could get out of bed and play.")
    s.add('"Thank you, {h}," {fhe} said. "You are a good friend."', '"You made me well," said {f}.')
    s.close(s.pick(["kind", "help"]), s.v["f"])


def help_old(s):
    s.anyone(0.25)
    s.meet()
    s.v["who"], she = s.pick([("old woman", "she"), ("old man", "he"), ("old farmer", "he"), ("old baker", "he"), ("old lady", "she")]) if not s.animal else s.pick([("old turtle", "he"), ("old goat", "she"), ("old bear", "he"), ("old owl", "she"), ("old badger", "he")])
    s.set_person("o", s.v["who"], she)
    s.one_day()
    s.v["fruit"] = s.pick(W.FRUITS)
    s.v["fruit"] += "es" if s.v["fruit"] == "peach" else "s"
    s.v["load"] = s.pick(["a heavy basket of {fruit}", "a big bag of {fruit}", "a basket full of {fruit}"])
    s.v["load"] = s.render(s.v["load"])
    s.add("{oneday}, {h} saw an {who} on the road with {load}.", "{oneday}, {h} met an {who} who carried {load}.")
    s.add("The {who} walked very slowly.", "The {who} looked tired.", "It was hot, and the {who} had to stop and rest.")
    s.maybe(0.5, "{h} was on {his} way to play, but {he} stopped.", "Many others walked by and did not stop.")
    s.add('"Can I help you?" asked {h}.', '"May I carry that for you?" {h} asked.')
    s.add('"[Oh, yes|Yes], please," said the {who}. "You are very kind."', '"Thank you, dear," said the {who}. "It is too heavy for me."')
    if s.chance(0.4):
        s.add("Then the bag [tore|broke] and all the {fruit} rolled down the hill. {h} ran and picked up every one.")
    s.add("{h} carried it all the way to the {who}'s house.", "Together they walked up the hill to a little house. {h} did not stop once.")
    reward = s.pick(["fruit", "story", "puppy", "thing"])
    if reward == "fruit":
        s.add("The {who} gave {him} the biggest and sweetest of the {fruit}.", 'The {who} smiled. "Take some {fruit} home," {ohe} said.')
        s.add("{h} took a bite. It was so sweet!", "{h} shared them with {his} family.")
    elif reward == "story":
        s.add("The {who} gave {him} warm milk and told {him} a story about [the sea|a brave knight|the stars|a lost ship].")
        s.add('"Will you come again?" asked the {who}. "Yes!" said {h}.')
    elif reward == "puppy":
        s.v["thing"] = s.pick(["a little bell", "a warm scarf", "a shiny coin", "a small whistle"])
        s.add("The {who} gave {him} {thing}. {h} [kept it for a long time|took it home with care].")
        s.add('"This is for your good heart," said the {who}.')
    else:
        s.add("The {who} had no gift, but {ohe} gave {h} a big hug.")
        s.add("{h} liked the hug more than any gift.")
    s.close(s.pick(["help", "kind"]))


def tell_truth(s):
    s.anyone(0.15)
    s.meet()
    s.family(["mom", "dad", "grandma", "grandpa"])
    thing, s.v["how"] = s.pick([("vase", "ran in the house and bumped into the table"), ("cup", "played with a ball in the kitchen"), ("lamp", "jumped on the couch"),
                                ("plate", "danced in the kitchen"), ("window", "threw a ball in the yard"), ("flower pot", "ran around the table"), ("bowl", "climbed on a chair")])
    s.v["thing"], s.v["tadj"] = thing, s.pick(["blue", "old", "pretty", "white", "big"])
    s.one_day()
    s.add("{oneday}, {he} {how}. Crash! The {tadj} {thing} broke.", "{oneday}, {h} {how}. Then there was a loud crash. {G}'s {tadj} {thing} was broken.")
    s.add("{h} was afraid. {He} [hid the pieces|ran to {his} room].", '"Oh no! {G} will be angry," {h} thought.')
    s.add('Soon {g} came in. "Who broke the {thing}?" {Ghe} asked.', '{g} saw the {thing}. "What happened here?" asked {G}.')
    if s.chance(0.55):
        s.pet(["dog", "cat", "puppy", "kitten"])
        s.add('"It was the {p}," said {h}. {G} told the {p} to go outside.', '"The {p} did it," {h} said. The {p} looked very sad.')
        s.add("{h} looked at the sad {p} through the window. {He} felt bad.", "{h} had a bad feeling in {his} tummy. The {p} did nothing wrong.")
        s.add('{He} went to {G}. "I told a lie," {he} said. "I broke the {thing}. I am sorry."', '"It was not the {p}," {h} said at last. "It was me. I am sorry."')
        end = "the " + s.v["p"]
    else:
        s.add('{h} wanted to say, "I do not know." But {he} knew that was a lie.', "{h} looked at {his} feet. It was hard to speak.")
        s.add('"It was me," {he} said. "I am very sorry."', '"I broke it," said {h}. A tear ran down {his} face.')
        end = s.v["G"]
    s.add('{G} was quiet for a moment. Then {Ghe} hugged {h}. "Thank you for telling the truth," {Ghe} said.', '{G} [hugged|looked at] {him}. "I am not angry," said {G}. "You were brave to tell me."')
    s.add("They cleaned up the pieces together.", "Together they put the pieces in a box.", "{h} helped {G} clean the floor.")
    s.close("honest", end if s.chance(0.5) else None, 0.85)


def greedy(s):
    s.anyone(0.5)
    s.meet()
    s.v["treat"] = s.pick(W.TREATS)
    s.one_day()
    s.family(["mom", "grandma", "dad", "grandpa"])
    s.friend()
    s.add("{oneday}, {g} gave {him} a big [bowl|basket|plate] of {treat}.", "{oneday}, {h} found a big basket of {treat} on the table. {G} had made it ready for everyone.")
    s.add('"[Share them with your friends|Do not eat them all at once]," said {G}.', '"They are for you and {f} to share," said {G}.')
    s.add('{mf} came by. "May I have some {treat}?" asked {f}. "No," said {h}. "I want them all."', 'But when {mf} asked for some, {h} said, "No! They are all mine!"')
    s.add("{He} ate and ate until all the {treat} were gone.", "{h} sat behind a tree and ate every one of the {treat}.")
    s.add("Then {his} tummy began to hurt. \"Ow, ow, ow!\" {he} cried.", "But soon {he} did not feel good. {His} tummy hurt very much.")
    s.add("{f} heard {him} and came back. {fHe} was not angry. {fHe} brought {h} [some water|warm tea].", '{f} sat down next to {him}. "I will stay with you until you feel better," {fhe} said.')
    s.add('"I am sorry, {f}," said {h}. "I should have shared."', '"You are so kind, and I was not," said {h}. "I am sorry."')
    s.add("The next time {h} had {treat}, {he} gave half of them to {f}.", "The next day, {h} brought {treat} for {f}, and they ate them together.")
    s.close("greedy", s.v["f"], 0.7)


def treasure(s):
    s.anyone(0.2)
    s.meet()
    if s.chance(0.5):
        s.sibling()
        s.v["w"], s.v["intro"] = s.v["b"], s.v["sib"]
    else:
        s.friend()
        s.v["w"], s.v["intro"] = s.v["f"], s.v["mf"]
    s.one_day()
    s.v["fspot"] = s.pick(["in an old book", "under the stairs", "in the attic", "in a bottle", "in an old box"])
    s.add("{oneday}, {he} found an old map {fspot}. It had a big red X on it.", "{oneday}, {h} and {intro} found a treasure map {fspot}.")
    s.v["l1"], s.v["l2"], s.v["l3"] = s.rng.sample(["the old bridge", "the tall tree", "the big rock", "the white gate", "the little stream", "the red barn", "the stone wall", "the dark cave"], 3)
    s.add('"Look, {w}! It is a treasure map!" said {h}.', '"Let us find the treasure!" said {h}. "Yes!" said {w}.')
    s.add("They followed the map. First they walked to {l1}. Then they went to {l2}.", "The map said to go past {l1} and then to {l2}.")
    if s.chance(0.5):
        s.add("At {l2}, there was a lot of mud. {w} slipped, but {h} [held {whim}|pulled {whim} out].".replace("{whim}", "{bhim}" if "b" in s.v else "{fhim}"))
    else:
        s.add('"I am tired," said {w}. "Just a little more," said {h}, and took {whis} hand.'.replace("{whis}", "{bhis}" if "b" in s.v else "{fhis}"))
    s.add("At last they came to {l3}. There was the X! They began to dig.", "The X was at {l3}. They dug and dug.")
    s.v["box"] = s.pick(["a small wooden box", "an old chest", "a rusty tin box", "a little blue box"])
    s.add("They found {box}.", "Bump! They hit {box}.")
    inside = s.pick(["coins", "toys", "letter", "shells"])
    if inside == "coins":
        s.add("It was full of chocolate coins! They shared them and ate them in the sun.")
    elif inside == "toys":
        s.add('Inside was a note. It said, "I hid my toys here when I was small. Have fun! Love, Grandpa." There were {n1} and {n2}.'.replace("{n1}", "a " + s.pick(["top", "whistle", "yo-yo"])).replace("{n2}", "two " + s.pick(["tin soldiers", "small cars", "marbles"])))
    elif inside == "letter":
        s.add('Inside was a letter. It said, "The best treasure is a good friend." {h} looked at {w} and smiled.')
    else:
        s.add("It was full of [shiny shells|pretty stones|old buttons in every color]. {h} and {w} shared them, one for you and one for me.")
    s.close("team", s.v["w"], 0.45)


def animal_rescue(s):
    s.kid() if s.chance(0.75) else s.beast(["bear", "rabbit", "fox", "deer", "dog", "goat", "monkey"])
    s.meet()
    s.one_day()
    s.place(W.LAND_PLACES)
    an, s.v["trouble"], s.v["fix"], s.v["free"] = s.pick([
        ("bird", "had a hurt wing and could not fly", "made a soft bed in a box and gave the bird water and seeds every day", "After a week, the bird could fly again"),
        ("turtle", "was on its back and could not get up", "gently turned the turtle over", "The turtle put its feet on the grass again"),
        ("rabbit", "was stuck under the fence", "dug a little hole under the fence", "The rabbit hopped free"),
        ("butterfly", "was caught in a spider web", "carefully pulled away the web", "The butterfly opened its wings"),
        ("hedgehog", "had fallen into a deep hole", "put a long branch into the hole", "The hedgehog climbed out"),
        ("fish", "was stuck in a tiny puddle", "carried the fish to the water in a bucket", "The fish swam in a circle"),
        ("squirrel", "had its tail stuck in the gate", "opened the gate very slowly", "The squirrel jumped free"),
        ("bee", "had fallen into the water and could not fly", "held out a leaf for the bee to climb on", "The bee dried its wings in the sun"),
        ("mouse", "was trapped in an empty jar", "tipped the jar on its side", "The mouse ran out of the jar"),
    ])
    s.v["an"], s.v["aadj"] = an, s.pick(["little", "small", "tiny"])
    s.add("{oneday}, {h} was {at} and saw a {aadj} {an}. It {trouble}.", "{oneday}, {h} found a {aadj} {an} {at}. The {an} {trouble}.")
    s.add('"[Oh no|Poor thing]," said {h}. "Do not be afraid, little {an}. I will help you."', "The {an} looked very scared. {h} spoke in a soft voice and came closer.")
    s.add("{h} {fix}.", "{He} thought for a moment. Then {he} {fix}.")
    s.add("{free}. It was so happy!", "{free}!")
    s.add("{h} waved and watched it go.", '"Goodbye, little {an}!" said {h}.', "The {an} looked back one time and was gone.")
    if s.chance(0.65):
        back = {"bird": "sang outside {his} window every morning", "turtle": "came to sit next to {him} in the sun", "rabbit": "left a small flower at {his} door", "butterfly": "sat on {his} nose and made {him} laugh",
                "hedgehog": "came to say hello with three little babies", "fish": "jumped out of the water to say hello", "squirrel": "left a pile of nuts at {his} door", "bee": "showed {him} a field full of flowers", "mouse": "brought {him} a shiny button"}[an]
        s.v["back"] = s.render(back)
        s.add("The next day, the {an} came back. It {back}." if an != "fish" else "The next day, {h} went back to the water. The fish {back}.", "A few days later, {h} saw the {an} again. It {back}.")
        s.add("{h} had made a new friend.", '"Thank you, {an}!" said {h}.', "Now {h} had a new friend.")
    s.close(s.pick(["help", "kind"]))


def race(s):
    s.beast(W.FAST_ANIMALS)
    s.friend()
    s.v["fkind"] = s.pick(W.SLOW_ANIMALS)
    s.meet(short=True)
    s.add("{He} was very fast. \"Nobody is as fast as I am!\" {he} said [every day|to everyone].", '{h} could run like the wind, and {he} [told everyone|liked to brag]. "I am the best!" {he} said.')
    s.one_day()
    s.v["goal"] = s.pick(["big rock", "old oak tree", "pond", "bridge", "top of the hill"])
    s.add('{oneday}, a {fkind} named {f} said, "Let us have a race to the {goal}."')
    s.add('{h} laughed. "You? You are so slow!" {he} said.', '"A race with you? That is funny," said {h}.')
    s.add("The race began. {h} ran very fast, and {f} walked slowly, step by step.", "One, two, three, go! {h} was soon far away. {f} went on, slow and steady.")
    br = s.pick(["nap", "stuck", "food"])
    if br == "stuck":
        s.v["stuck"] = s.pick(["fell into a hole", "got stuck in the mud", "got caught in a bush"])
        s.add("But {h} did not look where {he} ran, and {he} {stuck}. \"Help!\" {he} called.")
        s.add("Soon {f} came by. {fHe} could win the race now. But {f} stopped.", "{f} heard {him} and stopped.")
        s.add('"Hold on to me," said {f}, and pulled {h} out.', "{f} found a long stick and helped {h} out.")
        s.add("They walked to the {goal} together, side by side. Nobody lost and nobody won.", '"You are slow, but you are a true friend," said {h}. They crossed the line together.')
        s.close(s.pick(["proud", "help"]), s.v["f"], 0.8)
    else:
        if br == "nap":
            s.add('"I have a lot of time," {h} thought. {He} lay down under a tree and fell asleep.')
        else:
            s.v["food"] = s.pick(["berries", "apples", "sweet clover", "carrots"])
            s.add('Then {h} saw some {food}. "I have time to eat," {he} said. {He} ate and ate.')
        s.add("{f} did not stop. {fHe} went on, step by step, past {h}.", "Step by step, {f} walked past {him}.")
        s.add("When {h} looked up, {f} was already at the {goal}. {h} ran, but it was too late.", "At last {h} ran on, but {f} was at the {goal} first!")
        s.add('"You won," said {h}. "I should not have laughed at you."', 'All the animals cheered for {f}. {h} said, "I am sorry. You did well."')
        s.close("proud", s.v["f"], 0.8)


def tidy_room(s):
    s.kid()
    s.toy(W.SMALL_THINGS + ["teddy bear", "doll", "toy car"])
    s.meet()
    s.family(["mom", "dad", "grandma"])
    s.add("But {his} room was always a big mess. There were toys [on the floor|on the bed] and socks everywhere.", "{h} never wanted to clean {his} room. It was a big mess.")
    s.one_day()
    s.add('{oneday}, {g} said, "Please clean your room, {h}." "Later," said {h}.', '"Please tidy up," said {g}. "I do not want to," said {h}.')
    s.add("Then {h} wanted to play with {his} {adj} {toy}, but {he} could not find it.", "The next day, {h} needed {his} {adj} {toy}. It was not there.")
    s.add("{He} looked under the socks and behind the toys. No {toy}.", "{He} looked and looked, but there was too much stuff.")
    s.add('"{G}, I cannot find my {toy}!" {h} cried.', '"My {toy} is lost!" said {h}.')
    s.add('"Maybe you will find it when you clean," said {G}.', '{G} smiled. "A messy room likes to hide things," {Ghe} said.')
    s.add("So {h} began to clean. {He} put the books on the shelf, the toys in the box, and the socks in the basket.", "{h} picked up the socks, then the books, and then the blocks.")
    s.v["spot"] = s.pick(["under the last sock", "under the bed", "behind a pile of books", "at the bottom of the toy box"])
    s.add("And there, {spot}, was the {adj} {toy}!", "Then {he} saw something {adj} {spot}. It was the {toy}!")
    s.add("{h} looked around. The room was clean and pretty.", '"My room looks so nice!" said {h}.', "{G} came in and clapped. \"Well done, {h}!\" {Ghe} said.")
    s.close("tidy", None, 0.75)


def lost_in_place(s):
    s.kid() if s.chance(0.7) else s.beast(["bunny", "mouse", "bear", "fox", "duck", "kitten", "puppy", "lamb", "penguin", "deer", "chick"])
    s.meet()
    s.family(["mom", "dad", "grandma", "grandpa"])
    s.place(W.TOWN_PLACES if not s.animal else [p for p in W.OUTDOORS if p[0] in ("forest", "meadow", "hill", "woods")])
    s.one_day()
    s.add("{oneday}, {h} went {to} with {g}.", "{oneday}, {g} took {h} {to}.")
    s.add('"Stay close to me," said {G}.', '"Do not run away," {G} said. "Hold my hand."' if not s.animal else '"Do not run away," {G} said.')
    s.v["see"] = s.pick(["a funny clown", "a big red balloon", "a puppy", "a man with a drum", "a shiny fish"]) if not s.animal else s.pick(["a blue butterfly", "a shiny stone", "a funny frog", "a sweet berry bush", "a red leaf in the wind"])
    s.add("But {h} saw {see} and ran to look at it.", "Then {h} saw {see}. {He} followed it and did not look back.")
    s.add("When {he} turned around, {G} was gone. {h} was lost.", "After a while, {h} looked around. {He} could not see {G} anywhere.")
    s.add("{h} began to cry.", '"{G}! Where are you?" {he} called.', "{h} felt very small and very scared.")
    if s.chance(0.5) or s.animal:
        s.v["who"] = s.pick(["a kind woman", "a police officer", "a nice old man", "a guard"]) if not s.animal else s.pick(["a wise owl", "an old turtle", "a kind deer", "a friendly squirrel"])
        s.v["whos"] = "the " + s.v["who"].split(" ", 1)[1].replace("nice ", "").replace("kind ", "").replace("wise ", "").replace("friendly ", "")
        s.add('{who} saw {him}. "Are you lost, little one?" asked {whos}.', '{who} stopped. "Why are you crying?" asked {whos}. "I lost my {gword}," said {h}.')
        s.add('"Let us find {Ghim} together," said {whos}.', '"I will help you," said {whos}. "Come with me."')
        s.add("They walked and called, and soon they saw {G}.", "They went back the same way, step by step. There was {G}!")
        s.add("{h} said thank you to {whos}.", '"Thank you!" {h} said to {whos}.')
    else:
        s.add('Then {he} remembered what {G} had told {him}. "If you are lost, stay in one place."', '"If you are lost, stay and wait," {G} always said. {h} remembered this.')
        s.add("So {h} sat down on a bench and waited. {He} was brave.", "{h} stood next to the door and did not move.")
        s.add("Soon {G} came running. \"There you are!\" {Ghe} cried.")
    s.add("{G} hugged {h} for a long time.", '"I was so worried," said {G}, and held {h} tight.')
    s.add('"I will stay close to you now," said {h}.', "On the way home, {h} stayed very close to {G}.")
    s.close(s.pick(["listen", "careful"]), None, 0.6)


def birthday(s):
    s.anyone(0.35)
    s.meet()
    s.friend()
    s.family(["mom", "dad", "grandma"])
    s.add("Today was {h}'s birthday. {He} woke up very early and was so excited.", "One morning, {h} jumped out of bed. It was {his} birthday!")
    s.add('But {G} did not say "Happy birthday." {GHe} only said, "Good morning."', "But {g} was busy and did not say a word about it.")
    s.add('Then {h} saw {mf}. "Do you know what day it is?" asked {h}. "It is [Monday|Friday|Sunday]," said {f}, and ran away.', '{h} went to {mf}. "I cannot play today," said {f}. "I have things to do."')
    s.add('"Everyone forgot my birthday," {h} thought. A tear ran down {his} cheek.', "{h} walked home alone. {He} felt very sad.", '"Nobody remembers," {h} said to {self}.')
    s.add("When {he} came home, the house was dark and quiet. {h} opened the door.", "In the evening, {he} opened the door. It was very dark inside.")
    s.add('"Surprise!" everyone shouted.', 'Then the lights came on. "Surprise! Happy birthday, {h}!" they all cried.')
    s.v["cake"] = s.pick(["chocolate", "carrot", "strawberry", "honey", "banana"])
    s.add("There were balloons and a big {cake} cake. {f} and {G} were there too.", "{G} had a {cake} cake, and {f} had a [red|blue|yellow|green] box with a bow.")
    s.add('"We did not forget," said {f}. "It was a secret!"', '"We made it all for you," said {G}.')
    s.toy(["kite", "book", "ball", "drum", "puppet", "toy boat", "hat", "scarf"])
    s.maybe(0.6, "{f} gave {him} a {adj} {toy}. It was just what {he} wanted.")
    s.add("{h} laughed and hugged them all.", "{h} blew out the candles and made a wish.")
    s.close(None)


def make_gift(s):
    s.anyone(0.2)
    s.meet()
    s.family(["mom", "dad", "grandma", "grandpa"])
    s.add("Soon it was {G}'s birthday. {h} wanted to give {Ghim} something special.", "{h} loved {g} very much and wanted to give {Ghim} a gift.")
    s.add("But {he} had no money.", '"I have only one coin," said {h}. "I cannot buy anything."', "{He} went to the store, but everything cost too much.") if not s.animal else s.add("But {he} did not know what to give.")
    s.add("{h} sat down and thought. Then {he} had an idea. {He} could make a gift!", '"I know!" said {h}. "I will make something myself."')
    gift, s.v["stuff"], s.v["make"] = s.pick([
        ("card", "paper and crayons", "drew a big red heart on it"), ("necklace", "string and shells", "put the shells on the string, one by one"),
        ("picture", "paper and paint", "painted a house with a big sun"), ("crown", "flowers and leaves", "tied the flowers into a ring"),
        ("bird house", "wood and nails", "painted it blue"), ("bracelet", "ribbon and buttons", "sewed the buttons on the ribbon"),
        ("basket", "long green grass", "bent the grass over and under"), ("little boat", "wood and cloth", "put a tiny flag on it")])
    s.v["gift"] = gift
    s.add("{He} got {stuff} and went to work.", "{He} found {stuff} and sat down at the table.")
    s.add("{He} {make}. It took all day.", "Very carefully, {he} {make}.")
    s.add("The {gift} was not perfect, but {he} had made it with love.", "It was a little crooked, but it was pretty.", "At last, the {gift} was done.")
    if s.chance(0.35):
        s.add("Then the wind blew it off the table, and a part of it [broke|came off]. {h} did not give up. {He} fixed it.")
    s.add('{h} gave the {gift} to {G}. "I made this for you," {he} said.', '"Happy birthday, {G}!" said {h}, and held out the {gift}.')
    s.add('{G} had tears in {Ghis} eyes. "It is the best gift ever," {Ghe} said.', '"Did you make this {gift}?" asked {G}. "It is wonderful!"')
    s.close("give", s.pick([None, s.v["G"]]), 0.7)


def magic_wish(s):
    s.anyone(0.4)
    s.meet()
    s.one_day()
    s.place(W.LAND_PLACES)
    magic = s.pick(["fairy", "fish", "stone", "star", "lamp"])
    s.add({"fairy": "{oneday}, {h} found a tiny fairy {at}. Her wing was stuck in a [bush|web], and {h} helped her.",
           "fish": "{oneday}, {h} found a golden fish on the grass {at}. {He} put it back in the water.",
           "stone": "{oneday}, {h} found a shiny stone {at}. It was warm, and it began to [glow|shine].",
           "star": "One night, a little star fell from the sky {at}. {h} found it in the grass.",
           "lamp": "{oneday}, {h} found an old lamp {at}. {He} rubbed it, and it began to glow."}[magic])
    s.v["magic"] = magic
    s.add('"[I will give you|You may have] one wish," said the {magic}.', '"Thank you for finding me," said the {magic}. "You can make one wish."')
    s.v["w1"], s.v["w2"] = s.pick2(["a big castle", "a mountain of candy", "a golden crown", "a flying horse", "a room full of toys"])
    s.add("{h} thought about {w1}. {He} thought about {w2}.", '"Should I wish for {w1}?" {he} thought. "Or for {w2}?"')
    s.friend()
    need, s.v["wish"], s.v["result"] = s.pick([
        ("{mf} was sick", "I wish that {f} gets well", "{f} jumped out of bed and felt fine"),
        ("{mf} was very sad because {fhe} had lost {fhis} {p}", "I wish that {f} finds {fhis} {p} again", "the {p} ran right into {f}'s arms"),
        ("there was no rain and all the flowers were dry", "I wish for rain", "soft rain began to fall, and all the flowers opened"),
        ("{mf} was always alone and had no one to play with", "I wish that {f} has many friends", "all the others came to play with {f}"),
        ("it was winter and the birds had no food", "I wish for food for all the birds", "there were seeds everywhere, and the birds sang"),
    ])
    s.v["p"] = s.pick(["dog", "cat", "puppy", "kitten"])
    if s.animal:
        s.v["p"] = "baby brother"
        s.v["result"] = s.v["result"].replace("right into {f}'s arms", "right up to {f}")
    s.v["need"], s.v["wish"], s.v["result"] = s.render(need), s.render(s.v["wish"]), s.render(s.v["result"])
    s.add("But then {he} remembered something. {need}.".replace("{need}", s.v["need"][0].upper() + s.v["need"][1:]))
    s.add('"I know my wish," said {h}. "{wish}."', '{h} closed {his} eyes. "{wish}," {he} said.')
    s.add('"That is a kind wish," said the {magic}. There was a flash of light.', "The {magic} shone with a bright light.")
    s.v["Result"] = s.v["result"][0].upper() + s.v["result"][1:]
    s.add("{Result}!", "And then, {result}!")
    s.add("The {magic} was gone, but {h} was very happy.", "{h} did not need a castle. {He} was happy.")
    s.close("kind", None, 0.7)


def snow_day(s):
    s.anyone(0.25)
    s.meet()
    s.add("One morning, {h} looked out and saw that everything was white. It had snowed!", "One winter day, there was a lot of snow.")
    if s.chance(0.5):
        s.sibling()
        s.v["w"], s.v["intro"] = s.v["b"], s.v["sib"]
    else:
        s.friend()
        s.v["w"], s.v["intro"] = s.v["f"], s.v["mf"]
    s.add('"Let us make a snowman!" {h} said to {intro}.', "{He} ran outside with {intro} to make a snowman.")
    s.add("They rolled a big ball, a middle ball, and a small ball.", "They made a big round body and a round head.")
    s.v["miss"], s.v["sub"], s.v["from"] = s.pick([("nose", "carrot", "the kitchen"), ("hat", "old hat", "the closet"), ("hat", "bucket", "the shed"), ("arms", "two long sticks", "under the tree"),
                                                  ("nose", "red apple", "the basket"), ("eyes", "two black stones", "the road"), ("scarf", "long red scarf", "the closet")])
    plural = s.v["miss"] in ("arms", "eyes")
    s.v["it"] = "them" if plural else "it"
    s.v["a"] = "" if plural else "a "
    s.add('"{w}, look! He has no {miss}," said {h}.', '"Something is wrong," said {w}. "He has no {miss}."')
    s.add("They looked in the snow, but they found nothing.", '"What can we use?" asked {h}. They thought and thought.')
    s.add("Then {h} ran to {from} and came back with {a}{sub}.", '"I know!" said {w}, and got {a}{sub} from {from}.') if s.v["from"] not in ("under the tree",) else s.add('"I know!" said {w}. There were {sub} under the tree.')
    s.add("They put {it} on the snowman. Now he looked [perfect|very happy|so funny].", "It was just right. The snowman had a big smile.")
    if s.chance(0.5):
        s.add("A few days later, the sun came out, and the snowman got smaller and smaller. {h} was sad.")
        s.add('"Do not be sad," said {w}. "He will come back with the next snow."', '"Goodbye, snowman," said {h}. "See you next winter!"')
        s.close(None)
    else:
        s.v["nm"] = s.pick(["Mr. Snow", "Frosty Fred", "Mr. White", "Snowy Joe", "Big Bob"])
        s.add('"His name is {nm}," said {h}. They danced around him.', "They called him {nm} and sang him a song.")
        s.add("When they were cold, they went inside and drank hot [chocolate|milk|tea].")
        s.close("team", s.v["w"], 0.4)


def floating_away(s):
    s.anyone(0.25)
    s.toy(W.FLOATING_TOYS)
    s.owns()
    s.place(W.WATERS)
    s.one_day()
    s.add("{oneday}, {h} went {to} to play with the {toy}.", "{oneday}, {he} took the {toy} {to}.")
    s.add("The {toy} fell into the water and began to float away.", "{He} put it on the water, but the wind pushed it far away.")
    s.add('"Come back, {toy}!" {h} cried.', '"Oh no! My {toy}!" {h} cried. The water was too deep for {him}.')
    s.v["who"] = s.pick(["duck", "frog", "turtle", "swan", "beaver", "otter", "fish"])
    if s.v["who"] == s.v["kind"]:
        s.v["who"] = "swan"
    s.v["name"] = s.pick(["friendly", "kind", "green" if s.v["who"] in ("frog", "turtle") else "white" if s.v["who"] in ("swan", "duck") else "little", "big"])
    if s.chance(0.5):
        s.add("{h} ran along the water, but {he} could not reach it.", "{He} tried with a stick, but the {toy} was too far.")
    s.add('Then a {name} {who} [came up|swam by]. "What is wrong?" asked the {who}. "My {toy} is gone," said {h}.', 'A {name} {who} saw it all. "Wait here," said the {who}. "I am a good swimmer."')
    s.add("The {who} swam out and pushed the {toy} back to {h}.", "Splash! The {who} swam fast and brought the {toy} back.")
    s.add('"Thank you so much!" said {h}. "How can I thank you?"', "{h} was so happy to have the {adj} {toy} again.")
    s.add('"Will you play with me?" asked the {who}. "I am often alone here." "Yes!" said {h}.', '"I would like some bread," said the {who}. {h} gave the {who} all the bread {he} had.')
    s.add("After that, {h} came {to} every day to see the {who}.", "They played with the {toy} all day, and {h} held on to it very well.")
    s.close(s.pick(["help", "friend", "careful"]))


def scary_neighbor(s):
    s.anyone(0.4)
    s.meet()
    who = s.pick(["bear", "dog", "giant", "dragon", "wolf", "lion"]) if s.animal else s.pick(["dog", "giant", "dragon", "bear"])
    if who == s.v["kind"]:
        who = "giant"
    s.v["who"] = who
    s.v["live"] = s.pick(["in a dark cave", "on the top of the hill", "in an old house", "behind the forest"])
    s.add("Near {his} home, there was a [big|huge] {who} {live}. Everyone was afraid of it." if who != "giant" else "Near {his} home, there was a huge giant {live}. Everyone was afraid of him.")
    s.v["it"], s.v["its"], s.v["itm"] = ("he", "his", "him") if who == "giant" else ("it", "its", "it")
    s.add('"Do not go there," they said. "The {who} is mean!"', '"The {who} will eat you!" the others said.')
    s.one_day()
    s.add("{oneday}, {h} heard someone cry. It was the {who}!", "{oneday}, {h}'s ball rolled [far away|down the road], right to the feet of the {who}." if not s.animal else "{oneday}, {h} got lost and came right to the home of the {who}.")
    s.add("{h} wanted to run away, but {he} saw that the {who} was sad.", "{h} was very scared. But the {who} had tears in {its} eyes.")
    s.add('"Why are you sad?" {h} asked in a small voice.', '"Are you hurt?" asked {h}.')
    if s.chance(0.5):
        s.add('"Nobody wants to play with me," said the {who}. "They all run away because I am so big."', '"I am lonely," said the {who}. "I have no friends."')
        s.add('"I will be your friend," said {h}.', '"You can play with me," {h} said.')
        s.add("They played all day. The {who} [was very funny|gave {h} a ride|knew many games].")
    else:
        s.add('"I have a thorn in my foot," said the {who}. "It hurts so much."')
        s.add("{h} was afraid, but {he} pulled the thorn out with care.", '"Hold still," said {h}, and pulled it out, one, two, three!')
        s.add('"Thank you," said the {who}. "You are small, but you are brave."')
    s.add('{h} told everyone, "The {who} is not mean at all!"', "Soon all the others came to play with the {who} too.", "When the others saw this, they were not afraid anymore.")
    s.close(s.pick(["friend", "brave"]), None, 0.7)


def too_small(s):
    s.beast(W.SMALL_ANIMALS)
    s.friend()
    big = s.pick([k for k in W.BIG_ANIMALS if k != s.v["kind"]])
    s.v["fkind"] = big
    s.v["mf"] = s.render("{his} friend {f} the {fkind}")
    s.meet(short=True)
    s.add('{h} was very small. "I wish I were big like {f} the {fkind}," {he} said.', "{h} was the smallest of all the animals. {He} wanted to be big like {mf}.")
    s.add('"I am too small to do anything," {he} said.', "{He} could not reach the apples, and {he} could not see over the grass.", "The others said, \"You are too little to play with us.\"")
    s.one_day()
    s.v["thing"] = s.pick(["gold ring", "key", "shiny coin", "little bell", "ball"])
    s.v["hole"] = s.pick(["a small hole", "a crack in the rock", "a narrow pipe", "a hollow log", "a gap under the wall"])
    s.add("{oneday}, {f} dropped {fhis} {thing} into {hole}.", "{oneday}, {f} was very sad. {fHis} {thing} had rolled into {hole}.")
    s.add('"I cannot get it," said {f}. "I am too big."', "{f} tried to reach it, but {fhe} was much too big.")
    s.add("All the big animals tried, but nobody could get in.", "Others tried too, but they were all too big.") if s.chance(0.6) else None
    s.add('"I can do it!" said {h}. {He} [went|crawled] inside. It was dark, but {he} was brave.', '"Let me try," {h} said. {He} was so small that {he} could walk right in.')
    s.add("Soon {he} came out with the {thing}.", "{He} found the {thing} and pulled it out.")
    s.add('"You did it!" cried {f}. "I am so glad that you are small!"', '"Thank you, {h}!" said {f}. "You are a little hero."')
    s.add("All the animals cheered.", "{f} let {h} ride on {fhis} back all day.", "{h} stood very tall and proud.")
    s.close("self", None, 0.85)


def picnic(s):
    s.anyone(0.35)
    s.meet()
    s.friend()
    s.place(W.OUTDOORS)
    s.one_day()
    s.v["f1"], s.v["f2"] = s.pick2(W.PICNIC_FOOD)
    s.add("{oneday}, {h} and {mf} went {to} for a picnic.", "{oneday}, {h} asked {mf} to come {to} for a picnic.")
    s.add("They had a {f1} and a {f2} in a basket.", "{h} brought a {f1}, and {f} brought a {f2}.")
    s.v["thief"] = s.pick(["bird", "squirrel", "dog", "raccoon", "goat", "monkey", "crow"])
    if s.v["thief"] in (s.v["kind"], s.v["fkind"]):
        s.v["thief"] = "crow"
    s.add("They put a blanket on the grass and sat down.", "They found a nice place in the shade.")
    s.add("But then a [little|hungry|cheeky] {thief} came and took the {f1}!", "When they looked away, a [hungry|thin|little] {thief} took the {f1} and ran [away|to a tree]." if s.v["thief"] not in ("bird", "crow") else "When they looked away, a hungry {thief} took the {f1} and flew to a tree.")
    s.add('"Hey! That is our {f1}!" {h} shouted.', '"Stop!" cried {f}. "That is not yours!"')
    s.add("Then they saw that the {thief} had [three babies|two tiny babies]. They were all very hungry.", "The {thief} was so thin and hungry. {h} felt sorry for it.")
    s.add('"They need it more than we do," said {h}. {f} nodded.', '"Let it eat," said {f}. "We still have the {f2}."')
    s.add("{h} and {f} shared the {f2}. It tasted very good.", "They broke the {f2} into two parts, one for {h} and one for {f}.")
    s.maybe(0.6, "The {thief} came back and put a [red berry|pretty flower|shiny stone] on the blanket.", "When they went home, the {thief} followed them for a while.")
    s.close(s.pick(["share", "kind"]), s.v["f"])


def stage(s):
    s.anyone(0.35)
    s.meet()
    s.v["act"], s.v["did"] = s.pick([("sing a song", "sang"), ("dance", "danced"), ("play the drum", "played"), ("tell a story", "told the story"), ("play the flute", "played"), ("read a poem", "read the poem")])
    s.friend() if s.chance(0.5) else s.family(["mom", "dad", "grandma", "grandpa"])
    s.v["w"], s.v["intro"] = (s.v["f"], s.v["mf"]) if "f" in s.v else (s.v["G"], s.v["g"])
    s.v["where"] = s.pick(["at school", "in the town"]) if not s.animal else s.pick(["in the forest", "in the meadow"])
    s.add("Soon there was a big show {where}. {h} was going to {act}.", "{h} had to {act} in the big show {where}.")
    s.add("{He} practiced every day. But on the day of the show, {he} was very scared.", "When the day came, {h} looked at all the people. {His} legs shook." if not s.animal else "When the day came, {h} saw all the animals. {His} legs shook.")
    s.add('"I cannot do it," {h} whispered. "What if I make a mistake?"', '"They will laugh at me," said {h}.')
    s.add('"Just look at me," said {intro}. "I will sit in the first row."', '"Take a deep breath," said {intro}. "I know that you can do it."', '"Everyone makes mistakes," said {intro}. "Just have fun."')
    s.add("{h} walked out. It was very quiet. {He} looked for {w} and saw {w} smile.", "{h} took a deep breath and walked out. {w} waved at {him}.")
    if s.chance(0.4):
        s.add("At first {he} forgot how to start. But {w} nodded, and then {he} remembered.")
    s.add("Then {he} began. {He} {did}, and {he} forgot to be afraid.", "{h} {did} better than ever.")
    s.add("At the end, everyone clapped and cheered.", 'When {he} was done, everyone shouted, "Bravo!"')
    s.add('"I did it!" {h} said to {w}.', "{w} gave {him} a [big hug|flower|kiss on the cheek].")
    s.close("brave", None, 0.75)


def sandcastle(s):
    s.kid()
    s.meet()
    if s.chance(0.5):
        s.sibling()
        s.v["w"], s.v["intro"], s.v["whis"] = s.v["b"], s.v["sib"], s.v["bhis"]
    else:
        s.friend()
        s.v["w"], s.v["intro"], s.v["whis"] = s.v["f"], s.v["mf"], s.v["fhis"]
    s.toy(["bucket", "shovel"])
    s.one_day()
    s.add("{oneday}, {h} went to the beach with {intro}. {He} took {his} {adj} {toy}.", "{oneday}, {h} and {intro} were at the beach. {h} had a {adj} {toy}.")
    s.add("They built a big sandcastle with [four towers|a tall tower|a long wall].", "They worked all morning and made a tall sandcastle.")
    s.add("{w} put a [shell|feather|little flag] on the top.", '"It is the best castle in the world," said {w}.')
    if s.chance(0.6):
        s.add("Then a big wave came. Whoosh! The castle was gone.", "But the water came closer and closer. A wave washed the castle away.")
        s.add('"Our castle!" {h} cried.', "{h} was so sad that {he} sat down and cried.")
        s.add('"We can build a new one," said {w}. "This time, not so close to the water."', '"Do not cry," said {w}. "The sea did not know. We can make an even bigger one."')
        s.add("So they moved back and began again. {h} used the {toy}, and {w} used {whis} hands.", "They went far from the water and started over. {h} filled the {toy} with sand again and again.")
        s.add("The new castle was even [bigger|better|taller] than the first.")
        s.add("A wave came, but it could not reach the castle. They cheered!", "They dug a deep ditch around it to keep the water away.")
        s.close("again", s.v["w"], 0.6)
    else:
        s.add("Then a big boy ran by and kicked the castle. It fell down.")
        s.add('"Why did you do that?" asked {h}. The boy looked down. "Nobody asked me to play," he said.')
        s.add("{h} was angry. But then {he} gave the boy the {adj} {toy}. \"You can help us build a new one,\" {he} said.")
        s.add('"I am sorry," said the boy. He dug and dug. He was very strong.')
        s.add("Together the three of them made a castle that was twice as big.")
        s.close(s.pick(["kind", "friend", "team"]), s.v["w"], 0.7)


def earn_money(s):
    s.kid()
    s.meet()
    s.toy(["kite", "ball", "drum", "truck", "doll", "robot", "toy boat", "book", "hat", "teddy bear", "toy train", "scooter"])
    s.one_day()
    s.family(["mom", "dad"])
    s.add("{oneday}, {h} saw a {adj} {toy} in the store window. {He} wanted it very much.", "{oneday}, {h} went to the store and saw a {adj} {toy}.")
    s.add('"Can I have it, {G}?" {he} asked {g}. "You can save your coins for it," said {G}.', "But {he} had no money.", 'The {toy} cost ten coins. "I have only two," {h} said sadly.')
    s.neighbor()
    s.v["j1"], s.v["j2"] = s.pick2(["washed the car", "picked up the leaves", "watered the flowers", "fed the chickens", "swept the floor", "walked the dog", "cleaned the windows", "carried the wood"])
    s.add('So {h} went to {n}. "Can I work for you?" {he} asked. "Yes," said {n}.', "{h} asked {n} for some work, and {n} said yes.")
    s.add("{He} {j1}, and {he} {j2}. It was hard work.", "On the first day, {he} {j1}. On the next day, {he} {j2}.")
    s.add("{n} gave {him} shiny coins, and {h} put them in a jar.", "After a week, {h} had enough coins.")
    if s.chance(0.55):
        s.add("{h} ran to the store and bought the {adj} {toy}.", "At last {he} could buy the {toy}. {He} carried it home with care.")
        s.add("It was more fun than any other toy, because {he} had earned it.", '"I am proud of you," said {G}. "You worked hard for that {toy}."')
        s.close("patient", None, 0.5)
    else:
        s.v["who"] = s.pick(["a little girl", "a little boy"])
        s.v["whos"] = s.v["who"].replace("a little", "the")
        s.v["tear"] = "her" if "girl" in s.v["who"] else "his"
        s.add("On the way to the store, {he} saw {who} in the street. {whos} had lost {tear} money for bread and was crying.".replace("{whos} had", s.v["whos"].capitalize() + " had"))
        s.add("{h} looked at the jar. Then {he} gave the coins to {whos}.")
        s.add('"You did a kind thing," said {n}, who had seen it all. The next day, {n} gave {h} a big box. The {adj} {toy} was in it!')
        s.close(s.pick(["kind", "give"]), None, 0.7)


def bedtime(s):
    s.anyone(0.45)
    s.meet()
    s.family(["mom", "dad", "grandma", "grandpa"])
    s.add("One night, {h} could not sleep.", "It was late, but {h} was not tired.", "The moon was up, but {h} was still awake.")
    s.add('"{G}, I cannot sleep," {he} said.', "{He} turned to the left, and {he} turned to the right.", "{He} called {g}. \"I am not sleepy,\" said {h}.")
    a, b = s.pick2([("drank a cup of warm milk", "warm milk"), ("counted sheep", "sheep"), ("looked at the stars", "stars"), ("sang a quiet song", "song"), ("counted to one hundred", "numbers")])
    s.v["t1"], s.v["t2"] = a[0], b[0]
    s.add("First {he} {t1}, but it did not help.", "{He} {t1}. {He} was still awake.")
    s.add("Then {he} {t2}, but {his} eyes stayed open.", "Then {he} {t2}. It did not help.")
    s.toy(W.SOFT_TOYS)
    if s.chance(0.5):
        s.add('"Something is missing," said {G}. "Where is your {toy}?"', '{G} looked at the bed. "Where is your {adj} {toy}?" {Ghe} asked.')
        s.v["spot"] = s.pick(["under the bed", "in the kitchen", "behind the door", "on the chair", "under the table"])
        s.add("They looked for it together. The {adj} {toy} was {spot}.", "{h} ran to look. There it was, {spot}!")
        s.add("{h} held the {toy} tight and lay down.", '"Now we can sleep," {h} said to the {toy}.')
    else:
        s.v["about"] = s.pick(["a bear who slept all winter", "a sleepy train", "a little boat on a quiet sea", "a star that was tired", "a sheep who could not sleep"])
        s.add("{G} sat down on the bed and told a story about {about}.", '"I will tell you a story," said {G}. It was about {about}.')
        s.add("{h} held {his} {adj} {toy} and listened.", "The story was soft and slow. {h} closed {his} eyes.")
    s.add("Soon {h} was fast asleep.", "In a moment, {he} was asleep.", "{His} eyes closed, and {he} began to dream.")
    s.add('"Good night, {h}," {G} whispered.', "{G} kissed {him} and turned off the light.", "{He} dreamed of [the moon|a green garden|the big sea|flying] all night long.")
    s.maybe(0.3, "In the morning, {h} felt [fresh and happy|wide awake].")


def doctor(s):
    s.anyone(0.25)
    s.meet()
    s.family(["mom", "dad", "grandma"])
    where, s.v["hurt"] = s.pick([("doctor", "ear hurt"), ("doctor", "tummy hurt"), ("doctor", "arm hurt"), ("dentist", "tooth hurt"), ("doctor", "throat hurt")])
    s.v["doc"] = where
    s.set_person("d", "doctor", s.pick(["he", "she"]))
    s.one_day()
    s.add("{oneday}, {h}'s {hurt}.", "{oneday}, {h} woke up and {his} {hurt}.")
    s.add('"We must go to the {doc}," said {g}.', '{g} said, "The {doc} can help you."')
    s.add('"No! I am afraid," said {h}. {He} hid under the table.', "{h} did not want to go. {He} was afraid.")
    s.toy(W.SOFT_TOYS)
    s.add('"You can take your {toy}," said {G}. So {h} took {his} {adj} {toy} and went.', '"I will hold your hand all the time," said {G}.' if not s.animal else '"I will stay with you all the time," said {G}.')
    s.add("The {doc} was very nice. {dHe} had a warm smile.", '"Hello, {h}," said the {doc}. "You do not have to be afraid."')
    if any("take your" in x for x in s.out):
        s.add('First the {doc} looked at the {toy}. "Your {toy} is fine," {dhe} said. {h} giggled.')
    else:
        s.add("{h} held on to {G} very tight.")
    s.add('Then the {doc} looked at {h}. "All done!" {dhe} said. It did not hurt at all.', "{h} sat very still. It was over in one minute.")
    s.add("The {doc} gave {him} [a sticker with a star|a red sticker|a balloon|a small toy].", '"You were very brave," said the {doc}.')
    s.add("The next day, {h} felt well again.", "Soon {h} felt much better.")
    s.close("brave", None, 0.75)


def hide_and_seek(s):
    s.anyone(0.4)
    s.meet()
    s.friend()
    s.one_day()
    s.place(W.LAND_PLACES)
    s.add("{oneday}, {h} played hide and seek with {mf} {at}.", '"Let us play hide and seek," said {mf} one day.')
    s.add('{f} closed {fhis} eyes and counted. "One, two, three!"', "{f} began to count to ten.")
    s.v["spot"] = s.pick(["behind a big rock", "in the tall grass", "in a hollow log", "behind the old oak tree", "under a pile of leaves", "under a bush", "behind the shed"])
    s.add("{h} ran to hide. {He} found a good place {spot}.", "{h} hid {spot} and was very quiet.")
    s.v["w1"], s.v["w2"] = s.pick2(["by the gate", "near the fence", "under the bench", "next to the well", "near the bridge"])
    s.add("{f} looked {w1}. No {h}. {fHe} looked {w2}. No {h}.", "{f} looked {w1} and {w2}, but {fhe} could not find {h}.")
    if s.chance(0.5):
        s.add("It was warm and soft there, and {h} fell asleep.", "{h} waited and waited. {He} got so tired that {he} fell asleep.")
        s.add('"{h}! Where are you?" called {f}. {fHe} was worried now.', "The sun went down, and {f} was worried.")
        s.add("Then {f} heard a funny sound. It was {h}, and {he} was snoring!", "Then {fhe} heard a soft snore {spot}.")
        s.add('"I found you!" {f} laughed. {h} opened {his} eyes. "Did I win?" {he} asked.')
    else:
        s.v["tickle"] = s.pick(["a feather", "a blade of grass", "a little ant", "some dust", "a butterfly"])
        s.add("Then {tickle} tickled {h}'s nose. \"Achoo!\" went {h}.")
        s.add('"I heard that!" {f} called, and ran to the place. "I found you!"')
        s.add("They both laughed so much that they fell over.", '"My nose gave me away," said {h}.')
    s.add('"You are the best at hiding," said {f}.', '"Now it is your turn to hide," said {h}.', "Then they walked home together.")
    s.close(None, s.v["f"])


def no_coat(s):
    s.anyone(0.25)
    s.meet()
    s.family(["mom", "dad", "grandma", "grandpa"])
    what, s.v["weather"], s.v["bad"], s.v["result"] = s.pick([
        ("coat", "cold", "A cold wind began to blow", "{He} was so cold that {his} teeth shook"),
        ("boots", "wet", "There was water everywhere", "{His} feet were cold and wet"),
        ("hat", "very hot", "The sun was hot and bright", "{His} head was hot and red"),
        ("umbrella", "gray", "Big drops began to fall", "{He} was wet from head to toe"),
        ("scarf", "cold", "Snow began to fall", "{His} neck was cold and {he} began to cough"),
        ("mittens", "cold", "Snow began to fall", "{His} hands were so cold that they hurt")])
    s.v["what"] = what
    s.v["it"] = "them" if what in ("boots", "mittens") else "it"
    s.v["result"] = s.render(s.v["result"])
    s.place(W.OUTDOORS)
    s.v["col"] = s.pick(["red", "blue", "green", "yellow"])
    s.add("One {weather} day, {h} wanted to go {to}." if what not in ("umbrella",) else "One gray day, {h} wanted to go {to}.")
    s.add('"Take your {col} {what}," said {g}.', '"Do not forget your {col} {what}," {g} said.')
    s.add('"No, I do not need {it}," said {h}, and ran out.', '"I do not like my {what}," said {h}. {He} went out without {it}.')
    s.add("At first, it was fun {at}. Then the weather changed. {bad}.", "But soon it was not fun anymore. {bad}.")
    s.add("{result}.", '"Oh no," said {h}. {result}.')
    s.maybe(0.5, '"I wish I had my {what}," {he} said.', "{He} thought of the {what} at home.")
    if s.chance(0.5):
        s.add("Then {he} saw {G}. {GHe} came down the road with the {col} {what}.", "{h} looked up. There was {G} with the {col} {what}!")
        s.add('"I thought you might need {it}," said {G}. {h} put {it} on right away.' if what != "umbrella" else '"I thought you might need it," said {G}. They stood under it together.')
    else:
        s.add("{He} ran all the way home. {G} gave {him} [warm soup|a cup of tea|a glass of water] and a soft blanket." if what != "hat" else "{He} ran all the way home. {G} gave {him} a glass of cold water.")
        s.add('"Next time I will take my {what}," said {h}.', "The next day, {h} took the {col} {what} and had a lot of fun.")
    s.add('"You were right, {G}," {he} said.', "{h} hugged {G}.")
    s.close(s.pick(["listen", "careful"]), None, 0.7)


def lost_pet(s):
    s.kid()
    s.pet()
    s.with_pet()
    s.one_day()
    s.add("{oneday}, {pn} was not in {pnhis} bed. {h} looked everywhere.", "But {oneday}, {pn} ran away." if s.v["p"] != "parrot" else "But {oneday}, {pn} flew out of the window.")
    s.add('"{pn}! Where are you?" {h} called.', "{h} was very sad. {He} missed {pn} so much.")
    s.v["s1"], s.v["s2"], s.v["s3"] = s.rng.sample(W.OUTDOOR_SPOTS, 3)
    s.add("{He} looked {s1}, but {pn} was not there.", "{He} looked {s1} and {s2}. No {pn}.")
    if s.chance(0.5):
        s.family()
        s.add("{G} helped {him} to look. They asked all the people in the street.", "{He} and {g} made a sign with a picture of {pn}.")
    else:
        s.neighbor()
        s.add('{He} asked {n}. "I think I heard a {p} {s3}," said {n}.', '"Have you seen my {p}?" {h} asked {n}. "I heard something {s3}," said {n}.')
    s.add("Then {h} heard a small sound {s3}. It was {pn}!", "{h} ran to look. {pn} was {s3}!" if "n" in s.v else "At last {h} looked {s3}. There was {pn}!")
    br = s.pick(["stuck", "baby", "asleep"])
    if br == "stuck":
        s.v["stuck"] = s.pick(["{pnHis} foot was stuck under a root", "{pnHis} collar was caught on a branch", "{pnHe} was in a hole and could not get out"])
        s.v["stuck"] = s.render(s.v["stuck"])
        s.add("{stuck}. {h} helped {pnhim} with care.")
    elif br == "baby":
        s.v["nb"] = s.pick(["a tiny bird", "a baby mouse", "a little duckling"])
        s.add("And {pnhe} was not alone. {pnHe} was keeping {nb} warm.")
    else:
        s.add("{pnHe} was fast asleep in the sun.", "{pnHe} was sleeping there with a [dirty|funny] nose.")
    s.add('"{pn}! I was so worried!" said {h}, and hugged {pnhim}.', "{h} held {pn} tight and did not want to let go.")
    s.add("At home, {pn} got a big dinner.", "That night, {pn} slept at the end of {h}'s bed.")
    s.close(None, s.v["pn"])


def pet_bath(s):
    s.kid()
    s.pet(["dog", "dog", "puppy", "cat", "kitten", "pony"])
    s.with_pet()
    s.one_day()
    s.place(W.OUTDOORS)
    s.add("{oneday}, they went {to}. {pn} found a big puddle of mud and jumped right in.", "{oneday}, {pn} rolled in the mud {at}.")
    s.add("Now {pn} was brown from nose to tail.", "{pn} was so dirty that {h} could only see {pnhis} eyes.")
    s.add('"You need a bath, {pn}!" said {h}. But {pn} did not like water.', '"Oh, {pn}! You are so dirty," said {h}. "It is time for a bath." {pn} ran away.')
    s.v["s1"] = s.pick(["under the table", "behind the couch", "under the bed", "behind the door"]) if s.v["p"] != "pony" else "behind the barn"
    s.add("{pnHe} hid {s1}.", "{h} ran after {pnhim}, around and around.")
    s.add("{h} tried to pull {pnhim}, but {pn} did not move.", '"Come out, {pn}," said {h}. {pn} shook {pnhis} head.')
    s.v["lure"] = s.pick(["{pn}'s favorite ball", "a tasty snack", "a piece of cheese", "a carrot"]) if s.v["p"] != "pony" else s.pick(["a carrot", "a sweet apple"])
    s.v["lure"] = s.render(s.v["lure"])
    s.add("Then {h} had an idea. {He} put {lure} next to the tub.", "{h} thought for a moment. Then {he} got {lure} and put it in the tub.")
    s.add("{pn} came out, step by step. Splash! {pnHe} was in the water.", "{pn} could not wait. {pnHe} jumped right in. Splash!")
    s.add("{h} washed {pnhim} with soap. There were bubbles everywhere.", "The water was warm, and {pn} began to like it.")
    s.add("Then {pn} shook {pnhis} fur, and {h} was all wet too!", "Soon {pn} was clean, but now {h} was wet from head to toe.")
    s.add('"Now we both had a bath!" {h} laughed.', "They both sat in the sun to dry.")
    s.close(None, s.v["pn"])


def pet_hero(s):
    s.kid()
    s.pet(["dog", "dog", "dog", "puppy", "cat", "pony"])
    s.with_pet()
    s.place(W.LAND_PLACES)
    s.one_day()
    s.add("{oneday}, {h} and {pn} went {to}.", "{oneday}, they took a long walk {at}.")
    br = s.pick(["lost", "hole", "storm", "found"])
    s.family(["mom", "dad"])
    if br == "lost":
        s.add("They walked very far. Soon {h} did not know the way home.", "They ran after a butterfly, and then {h} was lost.")
        s.add('"I do not know where we are," {h} cried.', "It got dark, and {h} was afraid.")
        s.add("But {pn} put {pnhis} nose to the ground and sniffed. {pnHe} knew the way.", "{pn} [licked {h}'s hand|looked at {h}] and began to walk. {h} followed {pnhim}.")
        s.add("They walked past the big tree and over the bridge. Then {h} saw the lights of {his} house.", "Step by step, {pn} led {him} home.")
    elif br == "hole":
        s.add("{h} did not see a deep hole in the ground. {He} fell in and could not get out.")
        s.add('"Help!" {he} called, but nobody was there.', '"Run home and get {G}, {pn}!" {h} called.')
        s.add("{pn} ran home as fast as {pnhe} could. {pnHe} pulled at {G}'s coat until {Ghe} came.", "{pn} ran to find {G}. {pnHe} would not stop until {Ghe} followed {pnhim}.")
        s.add("{G} came with a rope and pulled {h} out.")
    elif br == "storm":
        s.add("Suddenly the sky got dark. There was thunder, and it began to rain hard.")
        s.add("{h} was scared and did not know where to go.")
        s.add("{pn} ran ahead and looked back at {him}. {h} followed {pnhim} to a little [hut|cave|barn].", "{pn} pulled {him} to an old barn. It was dry inside.")
        s.add("They sat close together. {pn} was warm, and {h} was not afraid anymore.")
        s.add("When the rain stopped, they walked home.")
    else:
        s.add("{pn} began to dig under a tree. {pnHe} dug and dug.", "Then {pn} stopped and would not move. {pnHe} looked at the ground and began to dig.")
        s.v["find"] = s.pick(["a gold ring", "an old watch", "a silver necklace", "a small box with a key"])
        s.add("There, in the dirt, was {find}!", "{h} looked into the hole and saw {find}.")
        s.neighbor()
        s.add('"This is mine!" said {n}. "I lost it a long time ago. Thank you!"', "It was the one that {n} had lost last year. {n} was so happy that {nhe} cried.")
        s.add("{n} gave {h} a cake and gave {pn} a big treat.")
    s.add('"{pn}, you are a hero!" said {h}.', '"Good {p}!" said {h}. "You are the best {p} in the world."')
    s.add("{G} gave {pn} a big dinner that night." if br != "found" else "{h} was very proud of {pn}.", "{h} hugged {pn} for a long time.")
    s.close(None, s.v["pn"])


def pet_trick(s):
    s.kid()
    s.pet(["dog", "dog", "puppy", "cat", "parrot", "pony", "rabbit"])
    s.v["trick"], s.v["did"] = s.pick([("sit", "sat"), ("roll over", "rolled over"), ("shake hands", "gave {h} a paw"), ("jump through a hoop", "jumped through the hoop"), ("dance", "danced in a circle"), ("catch a ball", "caught the ball")]) if s.v["p"] not in ("parrot", "pony", "rabbit") else s.pick([("dance", "danced in a circle"), ("come to the door", "came to the door")] if s.v["p"] != "parrot" else [("say hello", 'said "Hello"'), ("sing", "sang a song")])
    s.v["trick"], s.v["did"] = s.render(s.v["trick"]), s.render(s.v["did"])
    s.with_pet()
    s.one_day()
    s.add("{oneday}, {h} wanted to teach {pn} to {trick}.", '{oneday}, {h} said, "I will teach you to {trick}, {pn}."')
    s.add("{h} showed {pnhim} how to do it, but {pn} only looked at {him}.", "But {pn} just [ran around|fell asleep|looked at {him}].")
    s.add("{h} tried again and again. {pn} did not understand.", '"Come on, {pn}!" said {h}. But nothing happened.')
    s.add('{h} got angry. "You are a silly {p}!" {he} said. {pn} looked sad and hid.' if s.chance(0.5) else '"Maybe {pn} cannot learn it," {h} said sadly.')
    s.family()
    s.add('"Be gentle," said {g}. "Use kind words and small treats."', '{g} smiled. "When you were small, you needed time too," said {G}.')
    s.add("So {h} was kind and patient. {He} gave {pn} a [treat|small snack] for every little step.", "So they practiced a little every day, with kind words and many treats.")
    s.add("After a few days, {pn} {did}!", "Then one morning, {pn} {did}!", "And at last, {pn} {did}!")
    s.add('"You did it, {pn}!" cried {h}. {He} danced with joy.', '"Good {p}!" {h} shouted, and hugged {pnhim}.')
    s.maybe(0.5, "{G} clapped and laughed.", "They showed the trick to the whole family.")
    s.close("patient", s.v["pn"], 0.5)


def storm_shelter(s):
    s.beast(["rabbit", "bunny", "mouse", "fox", "bear", "squirrel", "hedgehog", "badger", "owl", "mole"])
    s.friend()
    s.v["home"] = W.ANIMAL_HOMES[s.v["kind"]]
    s.meet()
    s.add("{He} had a [small|warm|cozy] {home} with [a soft bed|one little bed].", "{His} {home} was small, but it was warm.")
    s.add("One night, there was a big storm. The wind howled, and the rain came down.", "One evening, it began to rain very hard, and the wind was strong.")
    s.v["f2"] = s.pick([k for k in ("frog", "bird", "hedgehog", "duck", "mouse", "squirrel") if k not in (s.v["kind"], s.v["fkind"])])
    s.add('Knock, knock! It was {mf}. "My home is full of water," said {f}. "May I come in?"')
    s.add('"It is very small here," said {h}. "But come in!"', '"Of course," said {h}. "There is room for two."')
    s.add('Then there was another knock. It was a wet little {f2}. "I am so cold," said the {f2}.', 'Soon a cold and wet {f2} came too. "Is there room for me?" asked the {f2}.')
    s.add('{h} looked around. "We will have to sit very close," {he} said, and let the {f2} in.', '"Yes," said {h}. "We can all fit."')
    s.v["treat"] = s.pick(["nuts", "berries", "warm soup", "apples", "bread"])
    s.add("They ate {treat} and told stories. It was full, but it was very warm.", "{h} gave them {treat}, and they all sat close together.")
    s.add("In the morning, the storm was over, and the sun was out.", "When the sun came up, the rain had stopped.")
    s.add("{f} and the {f2} helped {h} to clean the {home}.", "But the wind had broken the door. {f} and the {f2} fixed it for {h}.", '"Thank you," said {f} and the {f2}. "You have a big heart."')
    s.close(s.pick(["share", "help", "kind"]), None, 0.7)


def heavy_thing(s):
    s.anyone(0.55)
    s.meet()
    s.friend()
    s.one_day()
    thing, s.v["where"], s.v["end"] = s.pick([("turnip", "out of the ground", "made soup for everyone"), ("pumpkin", "to the house", "made a big pie for everyone"), ("log", "off the road", "sat on it and had lunch"),
                                              ("rock", "off the road", "sat down and laughed"), ("cart", "out of the mud", "all took a ride on it"), ("boat", "to the water", "all went for a ride"), ("carrot", "out of the ground", "ate it together")])
    s.v["thing"] = thing
    ground = s.v["where"] == "out of the ground"
    s.v["verb"] = "pull" if ground or thing in ("cart", "boat") else "push"
    s.v["past"] = s.v["verb"] + "ed"
    s.add("{oneday}, {h} wanted to {verb} a [huge|very big|big] {thing} {where}.", "{oneday}, {h} found a [huge|very big] {thing}. {He} had to {verb} it {where}.")
    s.add("{He} {past} and {past}, but the {thing} did not move.", "{He} {past} with all {his} strength. It did not move.")
    s.add('{He} called {mf}. "Can you help me?" {he} asked.', 'Then {mf} came by. "Let me help you," said {f}.')
    s.add("They {past} together, but the {thing} was too heavy.", '"One, two, three!" they said. The {thing} moved a little, but then it stopped.')
    s.v["c1"] = s.pick(["dog", "goat", "horse", "cow", "bear"])
    s.v["c2"] = s.pick(["mouse", "ladybug", "chick", "kitten", "ant"])
    for key in ("c1", "c2"):
        if s.v[key] in (s.v["kind"], s.v["fkind"]):
            s.v[key] = "donkey" if key == "c1" else "beetle"
    s.add("A {c1} came to help too. They {past}, but it was still too heavy.", "They asked a {c1} to help. Now there were three of them, but the {thing} would not move.")
    s.add('Then a tiny {c2} came. "I can help," said the {c2}. {f} laughed. "You are too small!"', 'At last a little {c2} said, "Let me help." Nobody thought that the {c2} was strong enough.')
    s.add('"Everyone can help," said {h}.', '"Every little bit helps," {h} said.')
    s.add("They all {past} together. One, two, three! And the {thing} went {where}!", "{h}, {f}, the {c1}, and the {c2} {past} as hard as they could. Up it came!" if ground else "{h}, {f}, the {c1}, and the {c2} {past} as hard as they could. It moved!")
    s.add("They cheered, and then they {end}.", '"We did it!" they shouted. They {end}.')
    s.close("team", None, 0.75)


def be_yourself(s):
    s.beast()
    wish, s.v["try1"], s.v["oops"] = s.pick([
        ("fly like a bird", "tied two leaves to {his} arms and jumped off a rock", "fell into a bush"),
        ("roar like a lion", "opened {his} mouth and tried to roar", "only made a tiny squeak"),
        ("swim like a fish", "jumped into the deep water", "swallowed a lot of it"),
        ("be as tall as a giraffe", "walked on two long sticks", "fell down on {his} nose"),
        ("have bright colors like a peacock", "painted {self} red and blue", "had to wash in the rain"),
        ("hang from a tree like a monkey", "climbed up and hung from a branch", "dropped down with a bump")])
    if s.v["kind"] in ("bird", "owl", "duck", "chick", "penguin", "monkey", "lion", "dragon", "frog", "turtle", "beaver"):
        wish, s.v["try1"], s.v["oops"] = ("be as tall as a giraffe", "walked on two long sticks", "fell down on {his} nose")
    s.v["wish"], s.v["try1"], s.v["oops"] = wish, s.render(s.v["try1"]), s.render(s.v["oops"])
    s.meet()
    s.add("But {h} was not happy. {He} wanted to {wish}.", '"I wish I could {wish}," {he} said every day.')
    s.one_day()
    s.add("{oneday}, {he} {try1}. But {he} {oops}.", "So {he} {try1}. Oh no! {He} {oops}.")
    s.add("The others laughed, and {h} felt very sad.", '"I am good at nothing," said {h}.', "{h} sat down and cried.")
    s.v["wise"] = s.pick(["old owl", "wise old turtle", "gray goose", "old badger"])
    s.add('A {wise} saw {him}. "Why do you want to be someone else?" asked the {wise}.', '"Everyone has a gift," said a {wise}. "You will find yours."')
    s.friend()
    can, need = s.pick([("run fast", "{f} was lost in the tall grass, and {h} ran fast and found {fhim}"), ("hear very well", "{h} heard a small cry far away. It was {f}, who was stuck under a log, and {h} helped {fhim} out"),
                        ("dig", "a rock fell in front of {f}'s home, and {h} dug a way out"), ("tell funny stories", "{f} was sick and sad, and {h} told so many funny stories that {f} laughed again")])
    s.v["need"] = s.render(need)
    s.v["mf2"] = s.v["mf"]
    s.add("The next day, {mf} was in trouble. {need}.".replace("{need}", s.v["need"][0].upper() + s.v["need"][1:]))
    s.add('"You saved me!" said {f}. "Nobody else could do that."' if can != "tell funny stories" else '"You made me well!" said {f}. "Nobody else could do that."')
    s.add("{h} smiled. {He} did not want to {wish} anymore.", '"I am glad that I am a {kind}," said {h}.')
    s.close("self", None, 0.7)


def new_sibling(s):
    s.kid()
    s.meet()
    s.family(["mom", "dad"])
    s.sibling()
    s.v["sibw"] = "sister" if s.v["bhe"] == "she" else "brother"
    s.add("One day, {his} mom had a baby. {h} had a new baby {sibw} named {b}.", "One day, there was a new baby at home. It was {his} baby {sibw}, {b}.")
    s.add("Everyone looked at {b} all the time. Nobody played with {h}.", "{b} cried a lot, and {g} was always tired.")
    s.add('"I do not like the baby," said {h}.', "{h} felt alone and a little angry.", '"The baby is too loud," {h} said.')
    s.one_day()
    s.add("One night, {b} cried and cried. Mom sang, and Dad walked up and down, but {b} did not stop.", "One afternoon, {b} began to cry. {g} tried everything, but {b} cried even more.")
    s.add("{h} went to the little bed and looked in.", "{h} came closer and held out one finger.")
    s.toy(W.SOFT_TOYS)
    s.v["act"] = s.pick(["made a funny face", "sang a little song", "gave {b} the {adj} {toy}", "danced in a circle"])
    s.v["act"] = s.render(s.v["act"])
    s.add("{He} {act}.", "Then {he} {act}.")
    s.add("{b} stopped crying and looked at {him}. Then {b} laughed!", "{b} was quiet. Then {bhe} gave {h} a big smile.")
    s.add('"{b} likes you best of all," said {G}.', '"Look! {b} loves you," said {G}. "You are a wonderful big {bigw}."'.replace("{bigw}", "sister" if s.v["he"] == "she" else "brother"))
    s.add("{h} was so proud. From then on, {he} helped every day.", "{h} held the baby's tiny hand. {He} was not angry anymore.")
    s.close("friend", s.v["b"], 0.3)


def moon_trip(s):
    s.anyone(0.3)
    s.meet()
    s.toy(["blanket", "box", "bed", "boat", "bike", "balloon"])
    if s.v["toy"] in ("box", "bed") and s.v["adj"] in W.QUALITIES:
        s.v["adj"] = "big"
    goal = s.pick(["the moon", "a land of candy", "the bottom of the sea", "an island of dragons", "the clouds", "a castle in the sky"])
    s.v["goal"] = goal
    s.friend()
    s.one_day()
    s.add("One night, {h} sat on {his} {adj} {toy} and it began to fly!" if s.v["toy"] not in ("balloon",) else "One night, {h} held on to a {adj} balloon, and it began to fly!")
    s.add("It took {him} up, over the trees, all the way to {goal}." if goal != "the bottom of the sea" else "It took {him} over the trees, and then down, down, to the bottom of the sea.")
    s.v["who"] = {"the moon": "moon mouse", "a land of candy": "candy king", "the bottom of the sea": "little fish", "an island of dragons": "baby dragon", "the clouds": "cloud sheep", "a castle in the sky": "little giant"}[goal]
    s.add("There {he} met a {who}. The {who} was sad.", 'A {who} came to meet {him}. "Can you help me?" asked the {who}.')
    s.v["lost"] = s.pick(["crown", "bell", "song", "shoe", "lamp"])
    if s.v["lost"] == "song":
        s.add('"I forgot my song," said the {who}. "Now I cannot sleep."')
        s.add("{h} knew many songs. {He} sang one, and the {who} sang along.")
        s.add('"That is a good song," said the {who}. "I will never forget it."')
    else:
        s.v["lspot"] = s.pick(["behind a hill", "under a big stone", "in a deep hole", "on top of a tower"])
        s.add('"I lost my {lost}," said the {who}. "I looked everywhere."')
        s.add("They looked together. {h} found the {lost} {lspot}.")
        s.add('"You found it!" cried the {who}, and danced with joy.')
    s.add("Then it was time to go home. The {toy} flew back to {h}'s room." if not s.animal else "Then it was time to go home. The {toy} flew all the way back.")
    s.add("In the morning, {h} told {mf} about it. \"It was only a dream,\" said {f}.", '"Was it a dream?" {h} asked in the morning.')
    s.v["proof"] = s.pick(["a little star", "a shiny feather", "a tiny gold coin", "a small silver button"])
    s.add("But on the {toy}, there was {proof}." if s.v["toy"] != "balloon" else "But next to {his} bed, there was {proof}.")
    s.add("{h} smiled. {He} knew that it was real.", "{h} put it in {his} pocket and smiled." if not s.animal else "{h} kept it and smiled.")


def lost_tooth(s):
    s.kid()
    s.meet()
    s.family(["mom", "dad", "grandma", "grandpa"])
    s.v["food"] = s.pick(["an apple", "a carrot", "a piece of bread", "a cookie", "a pear"])
    s.add("One day, {h} had a loose tooth. {He} was afraid to lose it.", "One morning, {h} felt that {his} tooth was loose. It moved when {he} touched it.")
    s.add('"Will it hurt?" {he} asked {g}. "No," said {G}. "A new tooth will grow."', '{g} smiled. "That means you are growing up," said {G}.')
    s.add("{h} did not want to eat and did not want to laugh.", "{h} kept {his} mouth shut all day.")
    s.add("Then {he} got very hungry. {He} took a small bite of {food}. Pop! The tooth came out.", "But later {he} forgot about it and bit into {food}. Pop! Out came the tooth.")
    s.add('"It did not hurt at all!" said {h}.', "{h} looked in the mirror and laughed. There was a funny gap.")
    if s.chance(0.5):
        s.add("But where was the tooth? It had rolled [under the table|behind the couch|across the floor].")
        s.add("{h} and {G} looked for it together. {h} found it next to {his} {sh}.".replace("{sh}", s.pick(["shoe", "chair", "ball", "book"])))
    s.add("That night, {he} put the tooth under {his} pillow.", "{h} put the tooth in a tiny box under the pillow.")
    s.add("In the morning, there was a shiny coin!", "When {he} woke up, the tooth was gone, and there was a gold coin.")
    s.add('"Look, {G}!" {he} shouted. "I hope I lose another one soon!"', "{h} showed the coin to {g} and gave a big smile with a gap in it.")
    s.close("brave", None, 0.5)


# (plot, weight): the plots that answer the most common openings come more often.
PLOTS = [
    (lost_toy, 3), (stuck_high, 3), (broken_toy, 3), (share_toy, 3), (floating_away, 3),
    (lost_pet, 2), (pet_bath, 2), (pet_hero, 3), (pet_trick, 2),
    (lost_baby_animal, 2), (scared_night, 2), (learn_skill, 2), (bake, 2), (seed, 2), (rainy_day, 2), (new_friend, 2),
    (sick_friend, 2), (help_old, 2), (tell_truth, 2), (greedy, 2), (treasure, 2), (animal_rescue, 2), (race, 1),
    (tidy_room, 1), (lost_in_place, 2), (birthday, 2), (make_gift, 2), (magic_wish, 2), (snow_day, 2), (scary_neighbor, 2),
    (too_small, 1), (picnic, 2), (stage, 2), (sandcastle, 1), (earn_money, 2), (bedtime, 2), (doctor, 1),
    (hide_and_seek, 2), (no_coat, 2), (storm_shelter, 1), (heavy_thing, 2), (be_yourself, 1), (new_sibling, 1),
    (moon_trip, 1), (lost_tooth, 1),
]
