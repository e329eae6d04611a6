"""Plots about lost, broken, shared and made things. See plots.py."""

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
